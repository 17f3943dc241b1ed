"""Where a configuration says that pods come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodealloc._arguments import named
from nodealloc._typed import typed
from nodealloc.dirwatch import Watcher
from nodealloc.dsw_asw import Clock, Executor
from nodealloc.errors import ConfigurationError
from nodealloc.kubeconfig._configuration import KubeletConfig
from nodealloc.podsources import Editions, FolderSource, HttpSource, PodSources, Polling, Rules, Source
from nodealloc.podspec import Pod

__all__ = ["pod_sources"]


@typed
def pod_sources(
    config: KubeletConfig,
    /,
    *,
    node_name: str,
    editions: Mapping[str, Editions] | None = None,
    remember: Callable[[str, Editions], object] | None = None,
    known: Mapping[str, Pod] | None = None,
    others: Mapping[str, Source] | None = None,
    wakers: Mapping[str, Watcher] | None = None,
    rules: Rules = Rules(),  # noqa: B008 - immutable
    executor: Executor | None = None,
    clock: Clock | None = None,
) -> PodSources:
    """The folder (`file`) and the address (`http`) of a configuration, and what others bring.

    Args:
        config: It.
        node_name: Of the node; static pods are named after it.
        editions: Which static pod was which when the process began, by source (`agent.Remembered`).
        remember: Keeps that (`agent.remembering_editions`); None to forget it with the process.
        known: Pods of an earlier run by uid (`agent.Remembered.pods`): one that cannot be read stays.
        others: More sources, by name: an API server's is `api`.
        wakers: Of any of them, who says when to read it before its period is over.
        rules: Whose.
        executor: Reads; by default a thread for each source.
        clock: Time, also for what the folder waits for.

    Raises:
        ConfigurationError: Pods come from nowhere, or a source of the configuration's has the
            name of another one.

    Source: kubelet ``config/file.go``, ``config/http.go``.
    """
    configured, more = _configured(config, node_name, rules, clock), dict(others or {})
    if twice := sorted(configured.keys() & more.keys()):
        raise ConfigurationError(f"pod_sources: others has {twice}, as the configuration has; rename those")
    if not configured and not more:
        raise ConfigurationError("pods come from nowhere; set staticPodPath or staticPodURL, or give others")
    periods = {"http": config.http_check_frequency_s} if "http" in configured else {}
    return PodSources(
        {**more, **configured},
        wakers=dict(wakers or {}),
        editions=editions,
        remember=remember,
        known=known,
        polling=Polling(period_s=config.file_check_frequency_s, periods=periods),
        rules=rules,
        executor=executor,
        clock=clock,
    )


def _configured(
    config: KubeletConfig, node_name: str, rules: Rules, clock: Clock | None
) -> Mapping[str, Source]:
    found: dict[str, Source] = {}
    if config.static_pod_path:
        found["file"] = FolderSource(
            config.static_pod_path,
            node_name=node_name,
            unreadable_s=config.file_check_frequency_s,  # a kubelet notices when it lists the folder
            is_lenient=not rules.keeps_unreadable,
            clock=clock,
            rules=rules,
        )
    if config.static_pod_url:
        headers = config.static_pod_url_header
        lenient = not rules.keeps_unreadable
        with named("staticPodURL"):
            found["http"] = HttpSource(
                config.static_pod_url, node_name=node_name, headers=headers, is_lenient=lenient
            )
    return found
