import { countPolicies } from "../../../policy-files/count-policies.ts";
import type { Arguments } from "../arguments.ts";
import type { CommandContext } from "../command.ts";
import { verbatim } from "../replies.ts";

/** The version of Redis whose protocol this is, for clients that look. */
const redisVersion = "7.2.0";

type Figures = Readonly<Record<string, string | number>>;

/** INFO [section …] */
export function info(args: Arguments, context: CommandContext): string {
  const asked = new Set<string>();
  for (let i = 1; i < args.count; i++) asked.add(args.bytes(i).toLowerCase());
  const everything = asked.size === 0 || ["all", "default", "everything"].some((word) => asked.has(word));
  const texts = Object.entries(sections)
    .filter(([name]) => everything || asked.has(name.toLowerCase()))
    .map(([name, figures]) => renderSection(name, figures(context)));
  return verbatim(texts.join("\r\n"), context.session.version);
}

const sections: Readonly<Record<string, (context: CommandContext) => Figures>> = {
  Server: ({ service, figures }) => ({
    redis_version: redisVersion,
    redis_mode: "standalone",
    sluice_version: service.version,
    uptime_in_seconds: Math.floor(figures.uptimeMs() / 1_000),
  }),
  Clients: ({ figures }) => ({ connected_clients: figures.connections() }),
  Stats: ({ figures }) => ({
    total_connections_received: figures.connectionsTotal(),
    total_commands_processed: figures.commandsTotal(),
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

function renderSection(name: string, figures: Figures): string {
  const lines = Object.entries(figures).map(([figure, value]) => `${figure}:${value}\r\n`);
  return `# ${name}\r\n${lines.join("")}`;
}
