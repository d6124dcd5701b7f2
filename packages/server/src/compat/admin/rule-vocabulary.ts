import type { Algorithm, Problem } from "sluice";
import { algorithms, maxDimensionLength, parseCidr, parseIp } from "sluice/internal";
import { choice, described, integer, objectOf, refine, type Shape, text } from "sluice/shape";
import type { Body } from "../../control-plane/admin-api/answer.ts";
import { why } from "../../control-plane/admin-api/query-parameters.ts";
import { freeTier } from "./read-rules.ts";
import { everything, isSubjectDimension, otherApiKey, type Rule, renderRuleId } from "./rule.ts";

/** A rule as a caller writes it; undefined fields get defaults. */
export interface WrittenRule {
  readonly ruleId: string | undefined;
  readonly name: string | undefined;
  readonly dimension: string;
  readonly value: string;
  readonly endpoint: string;
  readonly algorithm: Algorithm | undefined;
  readonly limit: number;
  readonly windowSeconds: number;
  readonly burst: number | undefined;
  readonly tier: WrittenTier;
  readonly why?: string | undefined;
  /** The version that the caller saw. */
  readonly expected_version?: number | undefined;
}

/** A tier, none, or not given. */
export type WrittenTier = { readonly of: string | undefined } | undefined;

/** A vocabulary for rules. */
export interface RuleVocabulary {
  readonly path: string;
  /** Its name in the documentation. */
  readonly schema: string;
  /** The name of each part of a rule. */
  readonly fields: Readonly<Record<RulePart, string>>;
  /** The parameters of a list that select the rules of one dimension. */
  readonly listedBy: readonly string[];
  /** The shape of a rule to be created. */
  readonly created: Shape<WrittenRule>;
  /** The shape of a rule that replaces another, with the version that the caller saw. */
  readonly replaced: Shape<WrittenRule>;
  render(rule: Rule): Body;
}

export type RulePart =
  | "id"
  | "name"
  | "dimension"
  | "value"
  | "endpoint"
  | "algorithm"
  | "limit"
  | "windowSeconds"
  | "burst"
  | "tier";

type Reading = Parameters<Shape<unknown>["read"]>[1];

export interface VocabularyNames extends Pick<RuleVocabulary, "path" | "schema" | "fields"> {
  /** For messages: `user, ip or apikey`. */
  readonly dimensionExamples: string;
  /** The spelling of the dimension `api_key` in answers. Both spellings are accepted. */
  readonly apiKey: string;
  /** The name for subjects without a tier; undefined: it is left out. */
  readonly untieredName: string | undefined;
  /** Other names that are accepted for parts. Answers do not use them. */
  readonly alsoRead?: Partial<Readonly<Record<RulePart, string>>> | undefined;
}

/** Creates a vocabulary from its names: requests and answers have the same fields. */
export function createRuleVocabulary(vocabulary: VocabularyNames): RuleVocabulary {
  const { path, schema, fields, apiKey, untieredName, alsoRead = {} } = vocabulary;

  /** A rule with parts of these names. */
  function shapeBy(named: VocabularyNames["fields"], more: Shapes): Shape<WrittenRule> {
    const [required, optional] = createShapes({ ...vocabulary, fields: named });
    return refine(objectOf(required, { ...optional, ...more }), (read, reading) => written(read, named, reading));
  }

  /** Accepts each part under any of its names, and reports problems by the name that the caller sent. */
  function ruleShape(more: Shapes = {}): Shape<WrittenRule> {
    const usual = shapeBy(fields, more);
    const others = Object.entries(alsoRead);
    if (others.length === 0) return usual;
    const namedIn = (value: object): VocabularyNames["fields"] => {
      const sent = others.filter(
        ([part, name]) => Object.hasOwn(value, name) && !Object.hasOwn(value, fields[part as RulePart]),
      );
      return { ...fields, ...Object.fromEntries(sent) };
    };
    return {
      name: usual.name,
      schema: { anyOf: [usual.schema, shapeBy({ ...fields, ...alsoRead }, more).schema] },
      read: (value, reading) =>
        (typeof value === "object" && value !== null ? shapeBy(namedIn(value), more) : usual).read(value, reading),
    };
  }

  function written(
    read: Readonly<Record<string, unknown>>,
    fields: VocabularyNames["fields"],
    reading: Reading,
  ): WrittenRule {
    const part = <T>(name: RulePart): T => read[fields[name]] as T;
    const spelt = part<string>("dimension");
    const dimension = spelt === otherApiKey ? "api_key" : spelt;
    const value = part<string | undefined>("value") ?? everything;
    const problem = findValueProblem(dimension, value);
    if (problem !== undefined) reading.problem(problem, fields.value);
    const tier = part<string | undefined>("tier");
    return {
      ruleId: part("id"),
      name: part("name"),
      dimension,
      value,
      endpoint: part<string | undefined>("endpoint") ?? everything,
      algorithm: part("algorithm"),
      limit: part("limit"),
      windowSeconds: part("windowSeconds"),
      burst: part("burst"),
      tier: tier === undefined ? undefined : { of: tier === freeTier ? undefined : tier },
      why: read.why as string | undefined,
      expected_version: read.version as number | undefined,
    };
  }

  return {
    path,
    schema,
    fields,
    listedBy: [fields.dimension, ...(alsoRead.dimension === undefined ? [] : [alsoRead.dimension])],
    created: ruleShape(),
    replaced: ruleShape({ version: versionShape }),
    render: (rule) => ({
      [fields.id]: renderRuleId(rule),
      [fields.name]: rule.name,
      [fields.dimension]: rule.dimension === "api_key" ? apiKey : rule.dimension,
      [fields.value]: rule.value,
      [fields.endpoint]: rule.endpoint,
      [fields.algorithm]: rule.algorithm,
      [fields.limit]: rule.limit,
      [fields.windowSeconds]: rule.windowSeconds,
      [fields.burst]: rule.burst,
      [fields.tier]: rule.tier ?? untieredName,
    }),
  };
}

type Shapes = Readonly<Record<string, Shape<unknown>>>;

const names = "[A-Za-z0-9._:/@-]{1,128}";
const tierNames = "[A-Za-z0-9][A-Za-z0-9 ._:/@-]{0,127}";

function createShapes({ fields, dimensionExamples }: VocabularyNames): readonly [required: Shapes, optional: Shapes] {
  const amount = integer({ min: 1, max: 1e12 });
  const value = text({ max: maxDimensionLength });
  return [
    {
      [fields.dimension]: dimensionShape(dimensionExamples),
      [fields.limit]: described(amount, "The limit of each window, in requests or their cost."),
      [fields.windowSeconds]: integer({ min: 1, max: 3_653 * 24 * 60 * 60 }),
    },
    {
      [fields.id]: described(
        text({
          max: 257,
          pattern: new RegExp(`^${names}(~${tierNames})?$`),
          form: "1 to 128 letters, digits or . _ : / @ -; for a tier followed by ~ and the tier",
        }),
        "Absent: one is generated. The rule of a tier has the id of its policy, followed by ~ and the tier.",
      ),
      [fields.name]: described(
        text({ max: 256, pattern: /^[^\r\n]+$/, form: "one line of text" }),
        "What the rule is for, in one line.",
      ),
      [fields.value]: described(value, "The only value that the rule applies to. Absent or *: each value separately."),
      [fields.endpoint]: described(value, "/orders, /orders/{order} or /orders/**. Absent or *: every request."),
      [fields.algorithm]: described(choice(algorithms), "Absent: that of the policy's other rules, else token_bucket."),
      [fields.burst]: described(amount, "The burst, for bucket algorithms. Absent: the limit."),
      [fields.tier]: described(
        text({
          max: 128,
          pattern: new RegExp(`^${tierNames}$`),
          form: "1 to 128 letters, digits, spaces or . _ : / @ -",
        }),
        "The tier that the rule applies to. Absent or free: subjects without a tier that has a rule.",
      ),
      created_at: answerTime,
      updated_at: answerTime,
      why,
    },
  ];
}

function dimensionShape(examples: string): Shape<string> {
  const form = `who is limited, such as ${examples}`;
  const shape = refine(text({ max: 64, pattern: /^[A-Za-z_][A-Za-z0-9_.-]*$/, form }), (dimension, reading) =>
    !isSubjectDimension(dimension) && dimension !== otherApiKey
      ? reading.problem(`must be ${form}, but is ${JSON.stringify(dimension)}`)
      : dimension,
  );
  return described(shape, `Who is limited: ${examples}, or a custom dimension.`);
}

const versionShape = described(
  integer({ min: 1 }),
  "The version that you saw, if you do not send If-Match. Absent: any version is replaced.",
);

/** A time that only answers contain. */
const answerTime = described(text({ max: 64 }), "Only in answers; ignored in requests.");

/** The problem with a value of a dimension; undefined if it is valid. */
function findValueProblem(dimension: string, value: string): string | undefined {
  if (dimension !== "ip" || value === everything || parseIp(value) !== undefined) return undefined;
  if (parseCidr(value) !== undefined) return undefined;
  return `must be an IP address or a range, such as 203.0.113.7 or 10.0.0.0/8, but is ${JSON.stringify(value.slice(0, 64))}`;
}

/** Turns a problem with the policy made of a rule into one with the rule. */
export function renameProblem({ fields }: RuleVocabulary, { tier }: Pick<Rule, "tier">, problem: Problem): Problem {
  const [first, , ...rest] = problem.path;
  const part =
    first === "match"
      ? partFromMatchKey(problem.path[1])
      : first === "limits"
        ? partFromLimitPath(rest)
        : parts[`${first}`];
  const field = part === undefined ? undefined : fields[part];
  // In another part of the policy, including other rules.
  if (field === undefined || (rest[0] === "tiers" && rest[1] !== tier)) return problem;
  return { ...problem, path: [field] };
}

const parts: Readonly<Record<string, RulePart>> = { id: "id", description: "name" };

/** A match as a whole is refused for naming too little, and most callers name the path. */
function partFromMatchKey(key: unknown): RulePart {
  return key === "endpoint" || key === undefined ? "endpoint" : "dimension";
}

function partFromLimitPath(path: Problem["path"]): RulePart | undefined {
  const field = path.at(-1);
  if (path[0] === "windows" || path[0] === "tiers")
    return ({ limit: "limit", per: "windowSeconds", burst: "burst" } as const)[`${field}`] ?? "tier";
  return ({ by: "dimension", algorithm: "algorithm" } as const)[`${path[0]}`];
}
