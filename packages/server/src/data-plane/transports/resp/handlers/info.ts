import { countPolicies } from "../../../policy-files/count-policies.ts";
import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { verbatim } from "../replies.ts";

/** The Redis version whose protocol this is, for clients that check. */
const redisVersion = "7.2.0";

type Fields = Readonly<Record<string, string | number>>;

/** INFO [section …] */
export function info(args: Arguments, context: CommandContext): string {
  const asked = new Set<string>();
  for (let i = 1; i < args.count; i++) asked.add(args.bytes(i).toLowerCase());
  const everything = asked.size === 0 || ["all", "default", "everything"].some((word) => asked.has(word));
  const texts = Object.entries(sections)
    .filter(([name]) => everything || asked.has(name.toLowerCase()))
    .map(([name, read]) => renderSection(name, read(context)));
  return verbatim(texts.join("\r\n"), context.session.version);
}

const sections: Readonly<Record<string, (context: CommandContext) => Fields>> = {
  Server: ({ service, totals }) => ({
    redis_version: redisVersion,
    redis_mode: "standalone",
    sluice_version: service.version,
    uptime_in_seconds: Math.floor(totals.uptimeMs() / 1_000),
  }),
  Clients: ({ totals }) => ({ connected_clients: totals.connections() }),
  Stats: ({ totals }) => ({
    total_connections_received: totals.connectionsTotal(),
    total_commands_processed: totals.commandsTotal(),
  }),
  Replication: () => ({ role: "master", connected_slaves: 0 }),
  Sluice: ({ service }) => {
    const counters = service.countersStatus();
    const { generation, policySet } = service.limiter.snapshot;
    return {
      accepting: Number(service.accepting()),
      policies: countPolicies(policySet),
      policies_generation: generation,
      policies_state: service.policyStatus().state,
      counters: counters === undefined ? "memory" : "redis",
      counters_ready: Number(counters?.ready ?? true),
      checks_pending: service.decide.pending,
    };
  },
};

function renderSection(name: string, fields: Fields): string {
  const lines = Object.entries(fields).map(([field, value]) => `${field}:${value}\r\n`);
  return `# ${name}\r\n${lines.join("")}`;
}
