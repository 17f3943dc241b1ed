// A device plugin as one is written in JavaScript: grpc-js, and nothing of nodealloc.
//
//   node plugin.js PROTOS DIRECTORY NAME RESOURCE DEVICES [--registry]
//
// It says what happens as lines of JSON, as nodealloc.testing.device_plugin does.
// SIGUSR2 makes its first device unhealthy (Node keeps SIGUSR1 for itself).
"use strict";
const fs = require("fs");
const path = require("path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [protos, directory, name, resource, count, mode] = process.argv.slice(2);
const options = { keepCase: true, longs: Number, defaults: true };
const load = (file) => grpc.loadPackageDefinition(loader.loadSync(path.join(protos, file), options));
const { v1beta1 } = load("deviceplugin_v1beta1.proto");
const { pluginregistration } = load("pluginregistration_v1.proto");
const own = path.join(directory, name);
const kubelet = path.join(directory, "kubelet.sock");
const streams = new Set();
let server;

const tell = (event, details) => console.log(JSON.stringify({ event, details }));

function list(health) {
  return {
    devices: Array.from({ length: Number(count) }, (_, i) => ({
      ID: `js-${i}`,
      health: i ? "Healthy" : health,
      topology: { nodes: [{ ID: i % 2 }] },
    })),
  };
}

const devicePlugin = {
  GetDevicePluginOptions: (call, done) =>
    done(null, { pre_start_required: true, get_preferred_allocation_available: true }),
  ListAndWatch: (stream) => {
    tell("called", "ListAndWatch");
    streams.add(stream);
    stream.on("cancelled", () => streams.delete(stream));
    stream.write(list("Healthy"));
  },
  GetPreferredAllocation: (call, done) =>
    done(null, {
      container_responses: call.request.container_requests.map((one) => ({
        deviceIDs: [...one.available_deviceIDs].sort().reverse().slice(0, one.allocation_size),
      })),
    }),
  Allocate: (call, done) =>
    done(null, {
      container_responses: call.request.container_requests.map((one) => {
        tell("allocated", one.devices_ids.join(","));
        return {
          envs: { DEVICES: one.devices_ids.join(",") },
          devices: [{ container_path: "/dev/null", host_path: "/dev/null", permissions: "rw" }],
          cdi_devices: [{ name: `${resource}=${one.devices_ids[0]}` }],
        };
      }),
    }),
  PreStartContainer: (call, done) => {
    tell("prepared", call.request.devices_ids.join(","));
    done(null, {});
  },
};

const registration = {
  GetInfo: (call, done) =>
    done(null, { type: "DevicePlugin", name: resource, supported_versions: ["v1beta1"] }),
  NotifyRegistrationStatus: (call, done) => {
    tell(call.request.plugin_registered ? "registered" : "refused", call.request.error || resource);
    done(null, {});
  },
};

function serve(then) {
  fs.rmSync(own, { force: true });
  server = new grpc.Server();
  server.addService(v1beta1.DevicePlugin.service, devicePlugin);
  server.addService(pluginregistration.Registration.service, registration);
  server.bindAsync(`unix:${own}`, grpc.ServerCredentials.createInsecure(), (error) => {
    if (error) throw error;
    tell("serving", own);
    then();
  });
}

function introduce() {
  const client = new v1beta1.Registration(`unix:${kubelet}`, grpc.credentials.createInsecure());
  client.Register({ version: "v1beta1", endpoint: name, resource_name: resource }, (error) => {
    tell(error ? "refused" : "registered", error ? error.message : resource);
    client.close();
  });
}

const identity = () => {
  const found = fs.statSync(kubelet, { throwIfNoEntry: false });
  return found && `${found.ino} ${found.ctimeMs}`;
};

process.on("SIGTERM", () => process.exit(0));
process.on("SIGUSR2", () => streams.forEach((stream) => stream.write(list("Unhealthy"))));
serve(mode === "--registry" ? () => {} : introduce);
if (mode !== "--registry") {
  let known = identity();
  setInterval(() => {
    const now = identity();
    if (!now || now === known) return;
    known = now;
    server.forceShutdown();
    streams.clear();
    serve(introduce);
  }, 100);
}
