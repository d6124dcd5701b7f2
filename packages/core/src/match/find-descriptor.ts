import type { DescriptorEntry, DescriptorNode } from "../policy/descriptor.ts";
import type { PolicySet } from "../policy/policy.ts";
import { compileTextPattern, type TextPattern } from "./text-pattern.ts";

/** Where a descriptor leads: the node of its last entry, and the subject counted there. */
export interface FoundDescriptor {
  readonly node: DescriptorNode;
  /** Its entries in order, joined without ambiguity: `message_type=marketing|to_number=5550100`. */
  readonly subject: string;
}

/** Whether a domain has a tree of descriptors. Without a domain: whether any has. */
export function hasDescriptors(policySet: PolicySet, domain?: string): boolean {
  const { descriptors = [] } = policySet;
  if (domain === undefined || descriptors.length === 0) return descriptors.length > 0;
  return compileDomains(policySet).has(domain);
}

/**
 * Finds the node of a descriptor. Each entry is looked up among the children of the one before: its exact value, else
 * the first pattern that fits it, else the node for any value of the key. Undefined if an entry has no node.
 */
export function findDescriptor(
  policySet: PolicySet,
  domain: string,
  entries: readonly DescriptorEntry[],
): FoundDescriptor | undefined {
  let level = compileDomains(policySet).get(domain);
  let found: CompiledNode | undefined;
  let subject = "";
  for (const { key, value } of entries) {
    found = level === undefined ? undefined : findNode(level, key, value);
    if (found === undefined) return undefined;
    const { node } = found;
    const counted = `${escaped(key)}=${escaped(node.shared ? node.value! : value)}`;
    subject = subject === "" ? counted : `${subject}|${counted}`;
    level = found.children;
  }
  return found === undefined ? undefined : { node: found.node, subject };
}

/** The nodes of one level, by key. */
type Level = ReadonlyMap<string, KeyNodes>;

interface KeyNodes {
  /** By value; patterns are found by their own text too. */
  readonly exact: Map<string, CompiledNode>;
  /** In the order they are written in. */
  readonly patterns: { readonly fits: TextPattern; readonly node: CompiledNode }[];
  any: CompiledNode | undefined;
}

interface CompiledNode {
  readonly node: DescriptorNode;
  readonly children: Level;
}

/** What was compiled from a policy set lives as long as the set. */
const compiled = new WeakMap<PolicySet, ReadonlyMap<string, Level>>();

function compileDomains(policySet: PolicySet): ReadonlyMap<string, Level> {
  let domains = compiled.get(policySet);
  if (domains === undefined) {
    const { descriptors = [] } = policySet;
    domains = new Map(descriptors.map((one) => [one.domain, compileLevel(one.descriptors)]));
    compiled.set(policySet, domains);
  }
  return domains;
}

function compileLevel(nodes: readonly DescriptorNode[]): Level {
  const level = new Map<string, KeyNodes>();
  for (const node of nodes) {
    const { key, value } = node;
    let ofKey = level.get(key);
    if (ofKey === undefined) {
      ofKey = { exact: new Map(), patterns: [], any: undefined };
      level.set(key, ofKey);
    }
    const one: CompiledNode = { node, children: compileLevel(node.children) };
    if (value === undefined) {
      ofKey.any = one;
      continue;
    }
    ofKey.exact.set(value, one);
    if (value.includes("*")) ofKey.patterns.push({ fits: compileTextPattern(value), node: one });
  }
  return level;
}

function findNode(level: Level, key: string, value: string): CompiledNode | undefined {
  const ofKey = level.get(key);
  if (ofKey === undefined) return undefined;
  const exact = ofKey.exact.get(value);
  if (exact !== undefined) return exact;
  for (const { fits, node } of ofKey.patterns) if (fits(value)) return node;
  return ofKey.any;
}

function escaped(text: string): string {
  return /[|=\\]/.test(text) ? text.replace(/[|=\\]/g, "\\$&") : text;
}
