// A device plugin as one is written in Go: grpc-go, fsnotify, and nothing of nodealloc.
//
//	plugin -directory DIR -name x.sock -resource example.com/gpu -devices 4 [-registry]
//
// It says what happens as lines of JSON, as nodealloc.testing.device_plugin does.
// SIGUSR2 makes its first device unhealthy.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"

	"nodealloc/api"
	"nodealloc/registry"
)

var (
	directory = flag.String("directory", "", "of the sockets")
	name      = flag.String("name", "go.sock", "of its own socket")
	resource  = flag.String("resource", "example.com/gpu", "what it serves")
	count     = flag.Int("devices", 4, "how many")
	found     = flag.Bool("registry", false, "wait to be found")
	line      sync.Mutex
)

func tell(event, details string) {
	line.Lock()
	defer line.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]string{"event": event, "details": details})
}

type plugin struct {
	sick chan struct{}
}

func (p *plugin) list(health string) *api.ListAndWatchResponse {
	answer := &api.ListAndWatchResponse{}
	for i := 0; i < *count; i++ {
		place := &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: int64(i % 2)}}}
		answer.Devices = append(answer.Devices, &api.Device{ID: fmt.Sprintf("go-%d", i), Health: "Healthy", Topology: place})
	}
	answer.Devices[0].Health = health
	return answer
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	tell("called", "ListAndWatch")
	if err := stream.Send(p.list("Healthy")); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case <-p.sick:
			if err := stream.Send(p.list("Unhealthy")); err != nil {
				return err
			}
		}
	}
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) GetPreferredAllocation(_ context.Context, asked *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	answer := &api.PreferredAllocationResponse{}
	for _, one := range asked.ContainerRequests {
		ids := append([]string{}, one.AvailableDeviceIDs...)
		sort.Sort(sort.Reverse(sort.StringSlice(ids)))
		answer.ContainerResponses = append(answer.ContainerResponses,
			&api.ContainerPreferredAllocationResponse{DeviceIDs: ids[:one.AllocationSize]})
	}
	return answer, nil
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, one := range asked.ContainerRequests {
		ids := strings.Join(one.DevicesIds, ",")
		tell("allocated", ids)
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs:       map[string]string{"DEVICES": ids},
			Devices:    []*api.DeviceSpec{{ContainerPath: "/dev/null", HostPath: "/dev/null", Permissions: "rw"}},
			CdiDevices: []*api.CDIDevice{{Name: *resource + "=" + one.DevicesIds[0]}},
		})
	}
	return answer, nil
}

func (p *plugin) PreStartContainer(_ context.Context, asked *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	tell("prepared", strings.Join(asked.DevicesIds, ","))
	return &api.PreStartContainerResponse{}, nil
}

func (p *plugin) GetInfo(context.Context, *registry.InfoRequest) (*registry.PluginInfo, error) {
	return &registry.PluginInfo{Type: "DevicePlugin", Name: *resource, SupportedVersions: []string{"v1beta1"}}, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, status *registry.RegistrationStatus) (*registry.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		tell("registered", *resource)
	} else {
		tell("refused", status.Error)
	}
	return &registry.RegistrationStatusResponse{}, nil
}

func (p *plugin) serve(path string) *grpc.Server {
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	registry.RegisterRegistrationServer(server, p)
	go func() { _ = server.Serve(listener) }()
	tell("serving", path)
	return server
}

func introduce(kubelet string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// With no authority of its own, grpc-go sends the socket's path as the name of the host.
	connection, err := grpc.DialContext(ctx, kubelet, grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err == nil {
		defer connection.Close()
		request := &api.RegisterRequest{Version: "v1beta1", Endpoint: *name, ResourceName: *resource}
		_, err = api.NewRegistrationClient(connection).Register(ctx, request)
	}
	if err != nil {
		tell("refused", err.Error())
		return
	}
	tell("registered", *resource)
}

func main() {
	flag.Parse()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR2)
	p := &plugin{sick: make(chan struct{})}
	path, kubelet := filepath.Join(*directory, *name), filepath.Join(*directory, "kubelet.sock")
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		err = watcher.Add(*directory)
	}
	if err != nil {
		panic(err)
	}
	server := p.serve(path)
	if !*found {
		introduce(kubelet)
	}
	for {
		select {
		case event := <-watcher.Events:
			if !*found && event.Name == kubelet && event.Op&fsnotify.Create != 0 {
				server.Stop()
				server = p.serve(path)
				introduce(kubelet)
			}
		case caught := <-signals:
			if caught == syscall.SIGTERM {
				server.Stop()
				return
			}
			p.sick <- struct{}{}
		}
	}
}
