// A worker with many calls to make, and a partner's API that allows 20 a second. The worker keeps to that pace, so nothing
// is refused. If a call is refused anyway, because others use the API too, it is repeated after the requested wait.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { rateLimit } from "@sluice/middleware/http";
import { pace } from "@sluice/pace";
import { createFetch } from "@sluice/pace/fetch";

/** Stands in for the partner: 20 a second for each address, ten at once. */
const admit = rateLimit("20/s burst 10");
let refused = 0;
const partner = createServer(async (request, response) => {
  if (await admit(request, response)) response.end("done");
  else refused += 1;
});
await new Promise<void>((resolve) => partner.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(partner.address() as AddressInfo).port}`;

// A little below the limit, with four calls at a time; Ctrl+C ends waits early.
const paced = pace("18/s burst 5", { concurrency: 4 });
const patientFetch = createFetch({ maxAttempts: 3 });
const stop = new AbortController();
process.once("SIGINT", () => stop.abort(new Error("interrupted")));

const jobs = Array.from({ length: 40 }, (_, i) => i);
const startedMs = performance.now();
let done = 0;
await Promise.all(
  jobs.map((job) =>
    paced(
      async () => {
        const answer = await patientFetch(`${url}/jobs/${job}`, { signal: stop.signal });
        if (!answer.ok) throw new Error(`job ${job}: ${answer.status}`);
        await answer.text();
        done += 1;
        if (done % 10 === 0) console.log(`${done} of ${jobs.length} done`);
      },
      { signal: stop.signal },
    ),
  ),
);
console.log(`${done} jobs in ${Math.round(performance.now() - startedMs)} ms, ${refused} refused`);
partner.close();
