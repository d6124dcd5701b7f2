/**
 * Properties draw the same examples in every run, so that a change is never blamed for what it did not cause.
 * `SLUICE_TEST_SEED=random npm test` draws others, and `SLUICE_TEST_SEED=N` those of a run that failed.
 */
import { configureGlobal } from "fast-check";

const everyRun = 20_261_118;
const { SLUICE_TEST_SEED: asked = String(everyRun) } = process.env;

if (asked !== "random") {
  if (!/^-?\d{1,10}$/.test(asked)) throw new Error(`SLUICE_TEST_SEED is a whole number or "random", not "${asked}"`);
  configureGlobal({ seed: Number(asked) });
}
