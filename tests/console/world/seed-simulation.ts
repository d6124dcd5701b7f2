import { gzipSync } from "node:zlib";
import type { ConsoleWorld } from "./start-console-world.ts";
import { worldTenants } from "./world-policies.ts";

const minuteMs = 60_000;

/** What a smaller limit for searches would have done to hours of an access log. Resolves when that is known. */
export async function seedSimulation({ admin }: Pick<ConsoleWorld, "admin">, hours: number): Promise<void> {
  const { document } = await admin.policies.get("search");
  const [limit] = document.limits as readonly Readonly<Record<string, unknown>>[];
  const candidate = { ...document, limits: [{ ...limit, windows: ["40/m"] }] };
  const { id } = await admin.simulations.create({
    source: { logBase64: gzipSync(renderLog(hours)).toString("base64") },
    ...{ format: "json", map: ["tenant=json:$.tenant"], findLimit: "search" },
    candidate: { policies: [JSON.stringify(candidate)] },
  });
  for (;;) {
    const { state, error } = await admin.simulations.get(id);
    if (state === "done") return;
    if (state !== "waiting" && state !== "running") throw new Error(`the simulation ${state}: ${error?.message}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Searches of all tenants, the first of which searches most, in waves. */
function renderLog(hours: number): string {
  const minuteNow = Math.floor(Date.now() / minuteMs);
  const lines: string[] = [];
  for (let minute = minuteNow - hours * 60; minute < minuteNow; minute += 1) {
    for (const [place, { name }] of worldTenants.entries()) {
      const wave = 1 + 0.45 * Math.sin(minute / 37 + place) + 0.15 * Math.sin(minute * 2.3 + place);
      const count = Math.round((52 / (place + 1)) * wave);
      for (let i = 0; i < count; i += 1) {
        const time = new Date(minute * minuteMs + (i * minuteMs) / count).toISOString();
        lines.push(JSON.stringify({ time, ip: `203.0.113.${place}`, method: "GET", path: "/v1/search", tenant: name }));
      }
    }
  }
  return `${lines.join("\n")}\n`;
}
