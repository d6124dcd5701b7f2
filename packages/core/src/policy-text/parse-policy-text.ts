import type { Problem } from "../errors.ts";
import { lintPolicies } from "../lint/lint-policies.ts";
import { assemblePolicies, type PolicyPart } from "../policy/assemble-policies.ts";
import type { PolicySet } from "../policy/policy.ts";
import { type ReadPolicies, readPolicyDocument } from "../policy/read-policy-document.ts";
import { problemsError } from "../shape/reading.ts";
import { hasMisspelt } from "../shape/suggest.ts";
import { readDomains } from "./domains-dialect.ts";
import { readDescriptors } from "./envoy-dialect.ts";
import { readRateLimits } from "./rate-limits-dialect.ts";
import type { RateLimitsRuntime } from "./rate-limits-runtime.ts";
import { parseYamlDocument, type YamlDocument } from "./yaml-document.ts";

/**
 * Formats of policy files, distinguished by their top-level key: `policies`, `domains`, `rate_limits`, `descriptors`.
 */
export type PolicyDialect = "sluice" | "domains" | "rate_limits" | "envoy";

export interface PolicyText {
  readonly text: string;
  /** Its name in the places of problems. */
  readonly file?: string;
}

export interface ParsedPolicyFiles {
  readonly policySet: PolicySet;
  /** What is legal but surprising, with its place. */
  readonly warnings: readonly Problem[];
  /** One per file. */
  readonly dialects: readonly PolicyDialect[];
  /** What each file says, as plain data. */
  readonly documents: readonly unknown[];
  /** Settings of the service, which the rate_limits format keeps in the same file. */
  readonly runtime?: RateLimitsRuntime;
}

/** What policy files name themselves, so that it does not come from elsewhere. */
export interface NamedInFiles {
  readonly ids: ReadonlySet<string>;
  /** Whether one of them has a default policy. */
  readonly hasDefault: boolean;
}

export interface ParsePolicyFilesOptions {
  /**
   * Policies from elsewhere that will be in force with those in the files, which may refer to them. Neither what is wrong with them
   * nor what may surprise is reported, and `policySet` contains them.
   */
  readonly others?: (named: NamedInFiles) => ReadPolicies;
}

export interface ParsedPolicyText extends Omit<ParsedPolicyFiles, "dialects" | "documents"> {
  readonly dialect: PolicyDialect;
  readonly file?: string;
}

/** Policies from one YAML or JSON text. Throws `invalid_policies` with every problem in it, each with its place. */
export function parsePolicyText(text: string, options: { readonly file?: string } = {}): ParsedPolicyText {
  const { dialects, documents: _, ...parsed } = parsePolicyFiles([{ text, ...options }]);
  return { ...parsed, dialect: dialects[0]!, ...options };
}

/**
 * Policies from several texts that are used together: policies may replace, and subjects may refer to, policies of
 * other files. Throws `invalid_policies` with every problem in any of them.
 */
export function parsePolicyFiles(
  files: readonly PolicyText[],
  { others: findOthers }: ParsePolicyFilesOptions = {},
): ParsedPolicyFiles {
  const parts = files.map(readPolicyFile);
  const others = findOthers?.({
    ids: new Set(parts.flatMap(({ ids }) => ids.map(({ value }) => value))),
    hasDefault: parts.some(({ fallback }) => fallback !== "absent"),
  });
  const { policySet, findSource } = assemblePolicies(others === undefined ? parts : [...parts, others]);
  const [settings, ...repeated] = parts.filter((part) => part.runtime !== undefined);
  for (const other of repeated)
    other.problems.push({
      path: ["runtime"],
      message: `is also in ${settings?.file ?? "another file"}; write it once`,
    });
  const problems = parts.flatMap((part) => inOrder(part.problems.map((one) => part.yaml.withPlace(one))));
  if (problems.length > 0) throw problemsError("invalid_policies", "the policies", problems);

  const lint = lintPolicies(policySet).flatMap(({ path, message }) => {
    const source = findSource(path);
    if (source === undefined || source.part === others) return [];
    const part = source.part as PolicyFilePart;
    // Only Sluice's own format has the fields that the rest of the path names.
    const written = part.dialect === "sluice" ? [...source.path, ...source.rest] : source.path;
    return [part.yaml.withPlace({ path: written, message })];
  });
  return {
    policySet,
    warnings: [
      ...parts.flatMap((part) => [
        ...part.yaml.warnings,
        ...(part.warnings ?? []).map((one) => part.yaml.withPlace(one)),
      ]),
      ...lint,
    ],
    dialects: parts.map((part) => part.dialect),
    documents: parts.map((part) => part.yaml.contents),
    ...(settings?.runtime === undefined ? undefined : { runtime: settings.runtime }),
  };
}

interface PolicyFilePart extends PolicyPart {
  readonly yaml: YamlDocument;
  readonly dialect: PolicyDialect;
  readonly runtime?: RateLimitsRuntime;
}

function readPolicyFile({ text, file }: PolicyText): PolicyFilePart {
  const yaml = parseYamlDocument(text, file);
  const dialect = findPolicyDialect(yaml.contents);
  const { contents, problems } = yaml;
  if (contents === undefined || contents === null) {
    const message = "is empty; write a list of policies under the key policies, or policies: [] for none";
    return { ...nothing(problems.length > 0 ? [...problems] : [{ path: [], message }]), file, yaml, dialect };
  }
  const read = readers[dialect](contents, yaml);
  read.problems.push(...problems);
  return { ...read, file, yaml, dialect };
}

const readers: Readonly<
  Record<
    PolicyDialect,
    (document: unknown, yaml: YamlDocument) => ReadPolicies & { readonly runtime?: RateLimitsRuntime }
  >
> = {
  sluice: readPolicyDocument,
  domains: readDomains,
  rate_limits: readRateLimits,
  envoy: (document, yaml) => readDescriptors(document, yaml.sourceAt),
};

/** By the keys of a document that was parsed. */
export function findPolicyDialect(contents: unknown): PolicyDialect {
  const has = (key: string) => typeof contents === "object" && contents !== null && Object.hasOwn(contents, key);
  if (has("policies")) return "sluice";
  if (has("domains")) return "domains";
  if (has("rate_limits")) return "rate_limits";
  const isEnvoys = has("descriptors") || (has("domain") && hasMisspelt(contents as object, "descriptors"));
  return isEnvoys ? "envoy" : "sluice";
}

function nothing(problems: Problem[]): ReadPolicies {
  return { policies: [], ids: [], fallback: "absent", subjects: [], problems };
}

function inOrder(problems: readonly Problem[]): readonly Problem[] {
  return problems.toSorted((a, b) => a.place!.line - b.place!.line || a.place!.column - b.place!.column);
}
