import type { Sluice } from "../../restart/start-sluice.ts";
import { worldTenants } from "./world-policies.ts";

/** One round of requests, spread evenly over the tenants. acme searches far more than it may. */
const everyMs = 200;

interface Check {
  readonly dimensions: Readonly<Record<string, string>>;
}

/** A steady, bounded load on the servers that it is given. */
export interface WorldTraffic {
  /** Requests that a round contains as well, from now on. */
  add(checks: readonly Check[]): void;
  stop(): Promise<void>;
}

/**
 * Each round is one batch to one server, and the next one waits for its answer: a slow machine gets less. Begins with the traffic of
 * the shop, or with none.
 */
export function startWorldTraffic(nodes: () => readonly Sluice[], isShop: boolean): WorldTraffic {
  let on = true;
  let round = 0;
  const extra: Check[] = [];
  const flow = (async () => {
    while (on) {
      const open = nodes();
      const node = open[round % open.length];
      const checks = [...(isShop ? checksOf(round) : []), ...extra];
      if (node !== undefined && checks.length > 0) await send(node, checks);
      round += 1;
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  })();
  return {
    add(checks): void {
      extra.push(...checks);
    },
    async stop(): Promise<void> {
      on = false;
      await flow;
    },
  };
}

async function send({ http }: Sluice, checks: readonly Check[]): Promise<void> {
  const headers = { "content-type": "application/json" };
  const asked = fetch(`${http}/v1/check`, { method: "POST", headers, body: JSON.stringify({ checks }) });
  // A server that is being restarted does not answer.
  await asked.then(
    (response) => response.text(),
    () => {},
  );
}

function checksOf(round: number): readonly Check[] {
  const tenant = worldTenants[round % worldTenants.length]!.name;
  const user = `${tenant}-user-${round % 3}`;
  const of = (method: string, endpoint: string, who: Readonly<Record<string, string>>): Check => ({
    dimensions: { method, endpoint, ip: `203.0.113.${round % 40}`, ...who },
  });
  return [
    of("GET", "/v1/search", { tenant: "acme", user: `acme-user-${round % 2}` }),
    of("GET", "/v1/search", { tenant: "acme", user: "acme-user-0" }),
    of("GET", "/v1/orders", { tenant, user }),
    of("GET", "/v1/orders", { tenant, user }),
    of("POST", "/v1/checkout", { tenant, user }),
    ...(round % 5 === 0
      ? [of("POST", "/login", { ip: "198.51.100.7" }), of("POST", "/v1/exports", { tenant, user })]
      : []),
    ...(round % 3 === 0
      ? [of("POST", "/hooks/order-placed", { tenant }), of("GET", "/partners/feed", { tenant })]
      : []),
    ...(round % 40 === 0 ? [of("POST", "/v1/sms", { phone: "+491701234567" })] : []),
  ];
}
