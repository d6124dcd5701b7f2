// What a stranger does with `sluice`, in TypeScript: the types say what the values are. Prints "done", or fails.
import {
  type CheckRequest,
  type CounterStore,
  createLimiter,
  type Decision,
  type DecisionReason,
  type Explanation,
  type Limiter,
  type LimiterOptions,
  MemoryCounters,
  type Problem,
  renderProblem,
  SluiceError,
} from "sluice";
import { type ParsedPolicyText, parsePolicyText } from "sluice/policy-text";
import { type ContractCase, counterStoreContract } from "sluice/testing";

const parsed: ParsedPolicyText = parsePolicyText("policies: [{ id: api, limits: [{ by: [user], windows: 5/m }] }]", {
  file: "policies.yaml",
});
const counters: CounterStore = new MemoryCounters({ maxCounters: 1000 });
const options: LimiterOptions = { policies: parsed.policySet, counters };
const limiter: Limiter = createLimiter(options);
const request: CheckRequest = { dimensions: { user: "ada" }, cost: 2, receipt: true };

const decision: Decision = await limiter.check(request);
const reason: DecisionReason = decision.reason;
const remaining: number | undefined = limiter.checkSync({ dimensions: { user: "ada" } }).remaining;
const given: boolean = decision.receipt === undefined ? false : await limiter.give(decision.receipt);
await limiter.charge({ dimensions: { user: "ada" }, cost: 1 });
await limiter.reset(request);
const explanation: Explanation = await limiter.explain(request);

// @ts-expect-error: a cost is a number
const wrong: CheckRequest = { cost: "2" };

function listProblems(act: () => unknown): readonly Problem[] {
  try {
    act();
    return [];
  } catch (error) {
    if (error instanceof SluiceError) return error.problems;
    throw error;
  }
}

const problems = listProblems(() => limiter.checkSync(wrong)).map(renderProblem);
const contract: readonly ContractCase[] = counterStoreContract;
const asExpected =
  reason === "within_limits" &&
  remaining === 2 &&
  given &&
  explanation.decision.allowed &&
  problems.length === 1 &&
  contract.length > 10;
process.stdout.write(
  asExpected ? "done\n" : `${JSON.stringify({ reason, remaining, given, explanation, problems })}\n`,
);
