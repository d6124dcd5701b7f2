/**
 * Every event that is logged, with its sentence. People alert on the event, which stays; the sentence may be reworded.
 * docs/operations.md lists them, and a test compares the two.
 */
export const logEvents = {
  // Recordings
  "recording.started": "recording started",
  "recording.ended": "recording ended",
  "recording.failed": "recording ended because its file could not be written",
  "recording.deleted": "recording deleted to keep within the size and the age of recordings",
  "recording.not_deleted": "recordings could not be deleted to make room",
  "recording.undescribed": "the end of a recording could not be written to its description",
  // The process
  "server.listening": "listening",
  "server.stopped": "stopped",
  "server.setting_warnings": "settings have warnings",
  "server.notify_failed": "systemd could not be notified",
  "server.requests_cut_off": "requests were cut off because they did not finish in time",
  "worker.started": "worker started",
  "worker.message_failed": "message to a worker could not be sent",
  "worker.ended": "worker ended",
  "worker.start_failed": "worker could not start",
  "worker.killed": "worker did not stop in time and was killed",
  "worker.replaced": "worker ended unexpectedly; another takes its place",
  "worker.start_retried": "worker could not start; trying again",
  // Connections, certificates and tokens
  "connection.refused": "connections refused: too many are open",
  "connection.closed_for_memory": "connections closed: clients left too much unread or half sent",
  "connection.closed_for_share": "gRPC connection closed: it used more than its share of this process",
  "connection.failed": "gRPC connection closed: its client broke a rule of HTTP/2",
  "tls.client_refused": "client refused: no name in its certificate is allowed",
  "tls.handshake_failed": "TLS handshake failed",
  "tls.reloaded": "certificates reloaded",
  "tls.reload_failed": "changed certificates cannot be used; the previous ones stay in use",
  "tls.certificate_expired": "the certificate has expired; clients will refuse it",
  "tls.certificate_expires_soon": "the certificate expires soon",
  "tokens.none": "the token file has no tokens, so every call is refused",
  "tokens.reloaded": "tokens reloaded",
  "tokens.reload_failed": "changed tokens cannot be used; the previous ones stay in use",
  "tokens.requests_refused": "requests refused: their tokens are unknown or have expired",
  // Policy files and the snapshot
  "policies.reloaded": "policies reloaded",
  "policies.reload_failed": "policies not reloaded; the last good ones stay in force",
  "policies.reload_recovered": "the policies on disk are in force again",
  "policies.unchanged": "the policies on disk have not changed",
  "policies.warnings": "policies have warnings",
  "policies.files_win": "policy files and the policy store both define these; those of the files are in force",
  "policies.store_wins": "policy files and the policy store both define these; those of the store are in force",
  "snapshot.unusable": "the policy snapshot cannot be used",
  "snapshot.written": "policy snapshot written",
  "snapshot.write_failed":
    "the policy snapshot could not be written; a start without good policies would use an older one, or fail",
  "snapshot.used":
    "the policy files cannot be used; the last good policies come from the snapshot, and the files are watched",
  // Counters and the servers that hold them
  "counters.opened": "counters are on servers",
  "counters.unreachable_at_start":
    "the counter servers cannot be reached yet; on_failure answers checks until they can",
  "counters.timeouts": "counter servers did not answer in time; on_failure answered these checks",
  "counters.process_starved":
    "this process was short of CPU and could not read answers in time; on_failure answered these checks",
  "counters.stats": "counter server statistics",
  "counters.inspect_failed": "counter servers could not be inspected",
  "counters.too_few_connections": "there are more counter servers than REDIS_MAX_CONN, and each needs a connection",
  "counters.servers_removed": "the policy files no longer name counter servers; this takes effect at the next start",
  "counters.servers_added": "the policy files now name counter servers; this takes effect at the next start",
  "counters.health_check_changed": "the deadline or health check of the counter servers changed and applies now",
  "counters.move_failed": "the new counter servers cannot be reached, so the old ones stay in use; SIGHUP tries again",
  "counters.reconnected": "reconnected to the counter servers with changed certificates or timeouts",
  "counters.moved": "counters moved to other servers; the old ones finish their pending calls",
  "counters.refresh_failed": "changed counter settings cannot be applied; the counters stay where they are",
  "counters.reset": "counters reset",
  "counters.settings_ignored": "these settings of the policy files have no effect",
  "redis.disconnected":
    "no connection to a counter server; on_failure answers the checks that need it until it is back",
  "redis.call_refused": "a counter server refused a call; on_failure answered",
  "redis.connected": "connected to a counter server",
  "redis.moved": "counters are now on another server",
  "redis.breaker_probed": "a counter server is probed",
  "redis.breaker_opened": "the breaker of a counter server opened; on_failure answers until it closes",
  "redis.breaker_closed": "the breaker of a counter server closed",
  "redis.events_omitted": "counter servers connected and disconnected too often to log each time",
  "redis.inspected": "counter server inspected",
  "redis.saturated": "a counter server uses most of a core; hot keys, or too few servers, may be why",
  "redis.evicting": "a counter server evicts keys because its memory is full; an evicted counter starts over",
  "redis.clock_off":
    "the clock of a counter server is off by more than a second; its windows begin and end at other times",
  "redis.misconfigured": "a counter server is configured in a risky way",
  "strong.breaker_closed": "the database of strong counters answers again",
  "strong.breaker_opened":
    "the database of strong counters does not answer; on_failure answers for their policies until it does",
  "leases.spent_beyond_time":
    "the counter servers do not answer, so leases are used past their time until their tokens or the budget run out",
  "leases.renewed": "the counter servers answer again, and leases are renewed",
  "leases.used_up": "leases ran out and the counter servers still do not answer; on_failure answers",
  "leases.return_failed": "some leases could not be returned",
  "leases.returned": "leases returned",
  // The policy store and this node
  "store.opened": "policy store opened",
  "store.unreachable_at_start": "the policy store cannot be reached yet; waiting for it",
  "store.unreachable":
    "the policy store cannot be reached; the last good policies stay in force, and the node keeps trying",
  "store.grace_expired":
    "the policy store has been unreachable for longer than its grace period; the last good policies still decide",
  "store.reachable": "the policy store can be reached again",
  "store.generation_went_back":
    "the policy store has an older generation than this node, as after a restored backup; the node uses the store's",
  "store.policies_unusable": "policies of the store cannot be used; the last good ones stay in force",
  "store.policies_left_out": "some policies of the store cannot be used and are left out; the rest is in force",
  "store.started_from_topic":
    "the policy store cannot be used; policies from the Kafka topic decide, and the node keeps trying",
  "store.started_from_snapshot":
    "the policy store cannot be used; policies from the snapshot decide, and the node keeps trying",
  "store.reset_failed": "a reset made on another node could not be carried out here",
  "store.first_token_taken": "the token in this file is now the first admin token",
  "store.first_token_refused":
    "the token in this file was used before and cannot become the first admin token; put a new one there",
  "store.first_token_made": "the first admin token was created and is in this file, which only its owner can read",
  "store.final_report_failed": "the policy store did not receive everything before this node stopped",
  "store.seeded": "policy store seeded",
  "store.node_report_failed": "the state of this node could not be reported to the policy store",
  "store.node_stop_report_failed": "the stop of this node could not be reported to the policy store",
  "store.policies_applied": "policies of the store applied",
  "store.generation_without_changes": "a new generation of the store changes nothing here",
  "push.recovered": "policy changes are pushed to this node again",
  "push.connected": "policy changes are pushed to this node",
  "push.lost": "policy changes are no longer pushed to this node; it polls every second",
  "push.topic_created": "created the Kafka topic that carries policies to nodes",
  "push.published": "wrote a generation of policies to the Kafka topic",
  "push.publish_failed":
    "could not write policies to the Kafka topic; nodes find the change by polling, and it is written again later",
  "push.generation_unusable": "the generation of policies in the Kafka topic cannot be used",
  "push.unsupported":
    "the policy store's server has no LISTEN, so this node polls every second; SLUICE_PUSH=redis (--push) pushes changes to nodes that share Valkey or Redis",
  "kill_switch.off": "the kill switch is off; policies decide again",
  "kill_switch.on_open": "the kill switch is on: every check is allowed until it ends",
  "kill_switch.on_closed": "the kill switch is on: every check is denied until it ends",
  // The control plane
  "console.unreadable": "the console cannot be served, because its files cannot be used",
  "session.revoke_failed":
    "a session ended, but its token could not be revoked and works until it expires; revoke it with sluice token revoke",
  "live.failed": "live data could not be read; trying again",
  "control.changed": "control plane change committed",
  "audit.write_failed": "a change was made, but the audit could not record it",
  "audit.refusals_lost": "refused attempts could not be recorded in the audit",
  "jobs.leader_changed": "the node that runs background jobs changed",
  "jobs.recovered": "background jobs run again",
  "jobs.failed": "background jobs failed; they will be retried",
  "jobs.expired_rows_deleted": "expired rows deleted",
  "rollout.rolled_back": "a rollout was rolled back",
  "rollout.moved": "a rollout moved to its next state",
  "rollout.tallies_recovered": "the policy store accepts rollout tallies again",
  "rollout.tallies_waiting": "the policy store does not accept rollout tallies; they wait in memory",
  // Usage
  "usage.waiting": "the policy store does not accept usage; sums wait in memory",
  "usage.stored_again": "the policy store accepts usage again",
  "usage.dropped": "sums of usage cannot be stored, and were dropped",
  "usage_events.failed": "a sink does not accept usage events; they wait in memory and are sent again",
  "usage_events.recovered": "a sink accepts usage events again",
  "usage_events.refused": "a sink refuses usage events for good; they are dropped, and later ones are still sent",
  "usage_events.left":
    "usage events were left unsent when the server stopped; those kept on disk are sent at the next start",
  "usage_events.spill_failed": "usage events cannot be kept on disk; a crash now loses those that wait in memory",
  "usage_events.replayed": "usage events of an earlier run were read back from disk, and are sent again",
  "denials.waiting": "the policy store does not accept denials; the newest records wait in memory",
  "denials.stored_again": "the policy store accepts denials again",
  "denials.dropped": "records of denials cannot be stored, and were dropped",
  // Checks and requests
  "check.failed_in_batch": "a check in a batch failed",
  "check.shed": "checks refused: too many were waiting (pending) or arriving (rate)",
  "check.near_limits": "subjects are near their limits",
  "check.allowed": "allowed",
  "check.denied": "denied",
  "http.request_failed": "a request failed",
  "grpc.call_failed": "a call failed",
  "resp.command_failed": "a command failed",
  // Traces
  "traces.recovered": "the collector accepts traces again",
  "traces.failed": "the collector does not accept traces; requests are not affected",
} as const;

export type LogEvent = keyof typeof logEvents;
