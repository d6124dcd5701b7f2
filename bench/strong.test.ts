import { expect, it } from "vitest";
import { runQuickly } from "./measure/run-quickly.ts";

it("npm run bench -- strong measures one row and many in both databases, and prints them last as one JSON object", {
  timeout: 120_000,
}, async () => {
  const number = expect.any(Number);
  const measured = { per_second: number, per_transaction: number, node_us: number, server_us: number };
  const results = [1, 16].flatMap((inFlight) =>
    ["PostgreSQL", "SQLite"].flatMap((database) =>
      [1, 10].map((rows) => ({
        ...{ name: `${database}, ${rows === 1 ? "one row" : "10 rows"}`, rows, in_flight: inFlight, ...measured },
        per_second_and_core: number,
      })),
    ),
  );
  expect(await runQuickly("strong")).toEqual({ suite: "strong", rows: 10, results });
});
