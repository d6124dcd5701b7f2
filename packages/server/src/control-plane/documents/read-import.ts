import type { PolicyFilesBody } from "@sluice/protocol/admin";
import { type Problem, SluiceError } from "sluice";
import {
  findPolicyDialect,
  type PolicyDialect,
  type PolicyText,
  parsePolicyFiles,
  parseYamlDocument,
  type ReadPolicies,
  readPolicyDocument,
} from "sluice/policy-text";
import { policySetBody } from "../../data-plane/transports/http/policy-body.ts";
import { invalidPolicies } from "../control-errors.ts";
import type { PolicyDocument } from "../policy-control.ts";
import { withImportedPlans } from "./import-plans.ts";
import { defaultPolicyId } from "./read-documents.ts";

/** The content of policy files, as documents. */
export interface ImportedConfiguration {
  readonly policies: ReadonlyMap<string, PolicyDocument>;
  /** The entry as written: `{ user: u1, tier: …, limits: […] }`. */
  readonly subjects: readonly ImportedSubject[];
}

export interface ImportedSubject {
  readonly dimension: string;
  readonly value: string;
  readonly tier: string | undefined;
  readonly limits: readonly {
    readonly policy: string;
    readonly limit: string;
    /** JSON. */
    readonly windows: string;
    readonly untilMs: number | undefined;
  }[];
}

/**
 * Reads the body of an import: a policy file, or several as `{ "files": [{ "file": …, "text": … }] }`. Each policy is read on
 * its own: references are resolved later, when all policies are known. Throws `invalid_policies` with every problem and its place.
 */
export function readImport(body: string): ImportedConfiguration {
  const parts: ReadPart[] = [];
  const problems: Problem[] = [];
  for (const source of filesInBody(body)) {
    const { contents, problems: syntax, withPlace } = parseYamlDocument(source.text, source.file);
    if (syntax.length > 0) {
      problems.push(...syntax);
      continue;
    }
    const part = readPart(contents, findPolicyDialect(contents), source);
    problems.push(...[...part.read.problems, ...findDoubles(part, parts)].map((one) => withPlace(one)));
    parts.push(part);
  }
  if (problems.length > 0) throw invalidPolicies(problems);
  return joinParts(parts);
}

/** The files of a body; one without a name where the body is the file itself. */
export function filesInBody(body: string): readonly PolicyText[] {
  const { files } = tryJson(body) ?? {};
  if (!Array.isArray(files)) return [{ text: body }];
  const given = files as readonly (Partial<PolicyFilesBody["files"][number]> | null)[];
  return given.map((one, index) => {
    if (typeof one?.file === "string" && typeof one.text === "string") return { file: one.file, text: one.text };
    throw new SluiceError("invalid_request", `files[${index}] should have a file, which is its name, and its text`, [
      { path: ["files", index], message: "should have a file, which is its name, and its text" },
    ]);
  });
}

/** Undefined for what is not an object in JSON. */
function tryJson(body: string): { readonly files?: unknown } | undefined {
  if (!body.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(body) as { readonly files?: unknown };
  } catch {
    return undefined;
  }
}

/** One file: as it is written, in Sluice's own format, and as it was read. */
export interface ReadPart {
  readonly written: WrittenFile;
  readonly read: ReadPolicies;
  readonly file: string | undefined;
}

interface WrittenFile {
  readonly domain?: string;
  readonly policies?: readonly PolicyDocument[];
  readonly default?: PolicyDocument | string;
  readonly plans?: unknown;
  readonly subjects?: readonly { readonly limits?: readonly { readonly windows?: unknown }[] }[];
}

/** Formats other than Sluice's own are translated: the policy store keeps policies in that one. */
export function readPart(contents: unknown, dialect: PolicyDialect, source: PolicyText): ReadPart {
  const { file } = source;
  if (dialect === "envoy") throw envoyRefused(file);
  const written = dialect === "sluice" ? contents : translate(source);
  return { written: written as WrittenFile, read: readPolicyDocument(written), file };
}

function envoyRefused(file: string | undefined): SluiceError {
  return new SluiceError(
    "invalid_request",
    `${file ?? "the body"} is in Envoy's format, which the policy store does not keep; serve it as a file: sluice serve --config ${file ?? "FILE"}`,
  );
}

/** These formats have no default policy and no subjects. */
function translate(source: PolicyText): WrittenFile {
  const { policies } = policySetBody(parsePolicyFiles([source]).policySet);
  return JSON.parse(JSON.stringify({ policies })) as WrittenFile;
}

/** What all files say together. */
export function joinParts(parts: readonly ReadPart[]): ImportedConfiguration {
  const policies = new Map(
    parts.flatMap(({ written }) => [
      ...(written.policies ?? []).map((policy) => [String(policy.id), inDomain(policy, written.domain)] as const),
      ...findDefault(written.default),
    ]),
  );
  return {
    policies: withImportedPlans(parts, policies),
    subjects: parts.flatMap(({ read, written }) =>
      read.subjects.map(({ value: entry, path: [, index] }): ImportedSubject => {
        const windows = written.subjects?.[index as number]?.limits ?? [];
        return {
          dimension: entry.dimension,
          value: entry.value,
          tier: entry.tier,
          limits: entry.limits.map(({ policy, limit = "", untilMs }, at) => {
            const own = windows[at]?.windows;
            return { policy, limit, windows: JSON.stringify(Array.isArray(own) ? own : [own]), untilMs };
          }),
        };
      }),
    ),
  };
}

/** Policies that are written twice, here or in a file before; and those with the id that the default policy has in the store. */
function findDoubles({ read, written }: ReadPart, before: readonly ReadPart[]): readonly Problem[] {
  const seen = new Set(before.flatMap((part) => part.read.ids.map(({ value }) => value)));
  const problems: Problem[] = [];
  for (const { value, path } of read.ids) {
    if (seen.has(value))
      problems.push({ path, message: `is ${value}, which another policy has too; every policy needs a unique id` });
    seen.add(value);
  }
  const other = before.find((part) => part.written.default !== undefined);
  if (other !== undefined && written.default !== undefined)
    problems.push({ path: ["default"], message: `is also written in ${other.file}; write it once` });
  return [...problems, ...findClashes(written)];
}

/** In the store, the default policy is the one with this id. */
export function findClashes(written: unknown): readonly Problem[] {
  const { policies } = (written ?? {}) as { readonly policies?: unknown };
  if (!Array.isArray(policies)) return [];
  const index = policies.findIndex((policy: { readonly id?: unknown } | null) => policy?.id === defaultPolicyId);
  const message = `is ${defaultPolicyId}, which is the id of the policy under default; choose another`;
  return index < 0 ? [] : [{ path: ["policies", index, "id"], message }];
}

/** In the store each policy stands alone, so it names the domain that the file set for all. */
function inDomain(policy: PolicyDocument, domain: string | undefined): PolicyDocument {
  const own = policy.domain ?? (policy.match as { readonly domain?: unknown } | undefined)?.domain;
  return domain === undefined || domain === "default" || own !== undefined ? policy : { ...policy, domain };
}

function findDefault(written: PolicyDocument | string | undefined): readonly (readonly [string, PolicyDocument])[] {
  if (written === undefined) return [];
  return [[defaultPolicyId, typeof written === "string" ? { unlimited: true } : written]];
}
