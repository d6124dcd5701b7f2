import {
  type Algorithm,
  algorithms,
  choice,
  described,
  integer,
  maxDimensionLength,
  objectOf,
  type Problem,
  parseCidr,
  parseIp,
  refine,
  type Shape,
  text,
} from "sluice";
import type { Body } from "../../control-plane/admin-api/answer.ts";
import { why } from "../../control-plane/admin-api/query-words.ts";
import { freeTier } from "./read-rules.ts";
import { everything, isWho, otherApiKey, type Rule, ruleIdOf } from "./rule.ts";

/** What a caller says of a rule; what is undefined they leave to us. */
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
  /** The version that they saw. */
  readonly expected_version?: number | undefined;
}

/** A tier, nobody's in particular, or nothing said. */
export type WrittenTier = { readonly of: string | undefined } | undefined;

/** One way to speak of rules. */
export interface RuleWords {
  readonly path: string;
  /** Called so in the documentation. */
  readonly schema: string;
  /** What each part of a rule is called. */
  readonly fields: Readonly<Record<RulePart, string>>;
  /** The parameters of a list that ask for the rules of one dimension. */
  readonly listedBy: readonly string[];
  /** A rule that is to be made. */
  readonly created: Shape<WrittenRule>;
  /** A rule in place of another, with the version that the caller saw. */
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

export interface RuleVocabulary extends Pick<RuleWords, "path" | "schema" | "fields"> {
  /** For messages: `user, ip or apikey`. */
  readonly dimensionExamples: string;
  /** How the dimension `api_key` is spelt in answers. Both spellings are read. */
  readonly apiKey: string;
  /** What whoever has no tier is called; undefined: it is left out. */
  readonly nobodysTier: string | undefined;
  /** Other names under which parts are read as well. Answers do not have them. */
  readonly alsoRead?: Partial<Readonly<Record<RulePart, string>>> | undefined;
}

/** Makes words of a vocabulary: what is read and what is told are the same fields. */
export function createRuleWords(vocabulary: RuleVocabulary): RuleWords {
  const { path, schema, fields, apiKey, nobodysTier, alsoRead = {} } = vocabulary;

  /** A rule whose parts are called so. */
  function shapeBy(named: RuleVocabulary["fields"], more: Shapes): Shape<WrittenRule> {
    const [required, optional] = shapesOf({ ...vocabulary, fields: named });
    return refine(objectOf(required, { ...optional, ...more }), (read, reading) => written(read, named, reading));
  }

  /** Each part under whichever of its names is sent, so that problems use the name that the caller sent. */
  function ruleShape(more: Shapes = {}): Shape<WrittenRule> {
    const usual = shapeBy(fields, more);
    const others = Object.entries(alsoRead);
    if (others.length === 0) return usual;
    const namedIn = (value: object): RuleVocabulary["fields"] => {
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
    fields: RuleVocabulary["fields"],
    reading: Reading,
  ): WrittenRule {
    const part = <T>(name: RulePart): T => read[fields[name]] as T;
    const said = part<string>("dimension");
    const dimension = said === otherApiKey ? "api_key" : said;
    const value = part<string | undefined>("value") ?? everything;
    const problem = problemOfValue(dimension, value);
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
      [fields.id]: ruleIdOf(rule),
      [fields.name]: rule.name,
      [fields.dimension]: rule.dimension === "api_key" ? apiKey : rule.dimension,
      [fields.value]: rule.value,
      [fields.endpoint]: rule.endpoint,
      [fields.algorithm]: rule.algorithm,
      [fields.limit]: rule.limit,
      [fields.windowSeconds]: rule.windowSeconds,
      [fields.burst]: rule.burst,
      [fields.tier]: rule.tier ?? nobodysTier,
    }),
  };
}

type Shapes = Readonly<Record<string, Shape<unknown>>>;

const names = "[A-Za-z0-9._:/@-]{1,128}";
const tierNames = "[A-Za-z0-9][A-Za-z0-9 ._:/@-]{0,127}";

function shapesOf({ fields, dimensionExamples }: RuleVocabulary): readonly [required: Shapes, optional: Shapes] {
  const amount = integer({ min: 1, max: 1e12 });
  const value = text({ max: maxDimensionLength });
  return [
    {
      [fields.dimension]: dimensionShape(dimensionExamples),
      [fields.limit]: described(amount, "What may pass in each window: requests, or what they cost."),
      [fields.windowSeconds]: integer({ min: 1, max: 3_653 * 24 * 60 * 60 }),
    },
    {
      [fields.id]: described(
        text({
          max: 257,
          pattern: new RegExp(`^${names}(~${tierNames})?$`),
          form: "1 to 128 letters, digits or . _ : / @ -; for a tier with ~ and the tier behind them",
        }),
        "Absent: one is made. The rule of a tier is called like the one that it stands beside, with ~ and the tier.",
      ),
      [fields.name]: described(
        text({ max: 256, pattern: /^[^\r\n]+$/, form: "one line of text" }),
        "What the rule is for, in one line.",
      ),
      [fields.value]: described(value, "The only one that the rule is for. Absent or *: each, by itself."),
      [fields.endpoint]: described(value, "/orders, /orders/{order} or /orders/**. Absent or *: every request."),
      [fields.algorithm]: described(
        choice(algorithms),
        "Absent: that of the rule that it stands beside, else token_bucket.",
      ),
      [fields.burst]: described(amount, "What may come at once, of the bucket algorithms. Absent: the limit."),
      [fields.tier]: described(
        text({
          max: 128,
          pattern: new RegExp(`^${tierNames}$`),
          form: "1 to 128 letters, digits, spaces or . _ : / @ -",
        }),
        "Whose tier the rule is for. Absent or free: whoever has no tier with a rule of its own.",
      ),
      created_at: toldMoment,
      updated_at: toldMoment,
      why,
    },
  ];
}

function dimensionShape(examples: string): Shape<string> {
  const form = `who is limited, such as ${examples}`;
  const shape = refine(text({ max: 64, pattern: /^[A-Za-z_][A-Za-z0-9_.-]*$/, form }), (dimension, reading) =>
    !isWho(dimension) && dimension !== otherApiKey
      ? reading.problem(`must be ${form}, but is ${JSON.stringify(dimension)}`)
      : dimension,
  );
  return described(shape, `Who is limited: ${examples}, or a dimension of your own.`);
}

const versionShape = described(
  integer({ min: 1 }),
  "The version that you saw, if you do not send If-Match. Absent: whatever there is is replaced.",
);

/** A moment that only answers tell. */
const toldMoment = described(text({ max: 64 }), "Told, and not looked at where it is sent.");

/** What is wrong with a value of a dimension; undefined where nothing is. */
function problemOfValue(dimension: string, value: string): string | undefined {
  if (dimension !== "ip" || value === everything || parseIp(value) !== undefined) return undefined;
  if (parseCidr(value) !== undefined) return undefined;
  return `must be an IP address or a range, such as 203.0.113.7 or 10.0.0.0/8, but is ${JSON.stringify(value.slice(0, 64))}`;
}

/** A problem with a policy that was made of a rule, as one with the rule. */
export function renameProblem({ fields }: RuleWords, { tier }: Pick<Rule, "tier">, problem: Problem): Problem {
  const [first, , ...rest] = problem.path;
  const part =
    first === "match" ? partOfMatch(problem.path[1]) : first === "limits" ? partOfLimit(rest) : parts[`${first}`];
  const field = part === undefined ? undefined : fields[part];
  // Elsewhere in the policy, the other rules included.
  if (field === undefined || (rest[0] === "tiers" && rest[1] !== tier)) return problem;
  return { ...problem, path: [field] };
}

const parts: Readonly<Record<string, RulePart>> = { id: "id", description: "name" };

/** What is wrong with a match as a whole is that it names too little, and the path is what is named most. */
function partOfMatch(key: unknown): RulePart {
  return key === "endpoint" || key === undefined ? "endpoint" : "dimension";
}

function partOfLimit(path: Problem["path"]): RulePart | undefined {
  const field = path.at(-1);
  if (path[0] === "windows" || path[0] === "tiers")
    return ({ limit: "limit", per: "windowSeconds", burst: "burst" } as const)[`${field}`] ?? "tier";
  return ({ by: "dimension", algorithm: "algorithm" } as const)[`${path[0]}`];
}
