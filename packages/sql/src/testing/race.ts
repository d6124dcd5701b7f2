// One of many processes that change the same store: node race.ts <url> <count>. Opens the store and makes `count`
// changes, each based on the previous one. Prints their generations.
import { openPolicyStore } from "../open-policy-store.ts";
import { sample } from "./sample-records.ts";

const [url = "", count = "0"] = process.argv.slice(2);
const store = await openPolicyStore({ url });
const generations: number[] = [];
for (let made = 0; made < Number(count); made += 1) {
  generations.push(
    await store.change(async (change) => {
      const version = ((await change.policy("login"))?.version ?? 0) + 1;
      const generation = await change.nextGeneration();
      await change.putPolicy(sample.policy({ version }));
      await change.addVersion(sample.version({ version }));
      await change.addAudit(sample.audit({ id: `a${String(version).padStart(6, "0")}`, generation }));
      return generation;
    }),
  );
  await store.note((note) => note.putNode(sample.node({ id: `n${process.pid}`, generation: made })));
}
await store.close();
process.stdout.write(JSON.stringify(generations));
