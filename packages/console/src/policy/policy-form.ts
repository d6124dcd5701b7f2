import { Document, isCollection, isMap, isScalar, isSeq, parseDocument, visit, YAMLMap } from "yaml";

/** The common fields of a policy, as a form shows them. YAML is what is edited; a form is a view of it. */
export interface PolicyForm {
  readonly id: string;
  readonly description: string;
  readonly owner: string;
  readonly endpoint: string;
  /** With commas; empty: any. */
  readonly methods: string;
  readonly mode: "enforce" | "shadow";
  readonly onFailure: "" | "open" | "closed" | "local";
  readonly limits: readonly LimitForm[];
}

export interface LimitForm {
  readonly name: string;
  /** Dimensions, with commas; empty: all requests share one counter. */
  readonly by: string;
  /** The dimension whose different values are counted; empty: cost is. */
  readonly distinct: string;
  readonly algorithm: string;
  /** In short form, with commas. Undefined: they are written in long form, which a line of text cannot hold. */
  readonly windows: string | undefined;
}

export type FormReading =
  | { readonly kind: "form"; readonly form: PolicyForm; readonly document: Readonly<Record<string, unknown>> }
  /** The text has a mistake that leaves no form to show. */
  | { readonly kind: "unreadable"; readonly why: string };

export type FieldPath = readonly (string | number)[];

/** What a new policy begins as. */
export const newPolicyText = `id: my-policy
description: What it is for
match: { endpoint: /v1/orders/** }
limits:
  - by: [tenant]
    windows: [100/s burst 200]
on_failure: open # what happens while counters are unavailable: open allows, closed denies
`;

export function readForm(text: string): FormReading {
  const parsed = parseDocument(text, { logLevel: "error", prettyErrors: false });
  const [error] = parsed.errors;
  if (error !== undefined) return { kind: "unreadable", why: error.message };
  const document: unknown = parsed.toJS({ maxAliasCount: 1_000 });
  if (!isRecord(document))
    return { kind: "unreadable", why: "A policy is a map of keys and values, such as id: orders." };
  const match = isRecord(document.match) ? document.match : {};
  const limits = Array.isArray(document.limits) ? document.limits : [];
  return {
    kind: "form",
    document,
    form: {
      id: asText(document.id),
      description: asText(document.description),
      owner: asText(document.owner),
      endpoint: asText(match.endpoint),
      methods: asList(match.method).join(", "),
      mode: document.mode === "shadow" ? "shadow" : "enforce",
      onFailure: failModes.find((mode) => mode === document.on_failure) ?? "",
      limits: limits.map(readLimit),
    },
  };
}

const failModes = ["open", "closed", "local"] as const;

function readLimit(limit: unknown): LimitForm {
  const fields = isRecord(limit) ? limit : {};
  const windows = Array.isArray(fields.windows) ? fields.windows : fields.windows === undefined ? [] : [fields.windows];
  return {
    name: asText(fields.name),
    by: asList(fields.by).join(", "),
    distinct: asText(fields.distinct),
    algorithm: asText(fields.algorithm),
    windows: windows.every((window) => typeof window === "string") ? windows.join(", ") : undefined,
  };
}

/**
 * The text with one field set, or removed if `value` is undefined or empty. Comments, order and everything else stay as they are.
 * A text in which the field has no place stays unchanged.
 */
export function writeField(text: string, path: FieldPath, value: unknown): string {
  return edit(text, path, (document) => {
    const isEmpty = value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
    if (!isEmpty) document.setIn(path, Array.isArray(value) ? document.createNode(value, { flow: true }) : value);
    else if (document.hasIn(path)) document.deleteIn(path);
    // `match: {}` says nothing.
    const parent = document.get(path[0]!, true);
    if (isEmpty && path.length === 2 && isCollection(parent) && parent.items.length === 0) document.delete(path[0]!);
  });
}

/** Adds an item to the list `limits`, and the list if there is none. */
export function addLimit(text: string): string {
  return edit(text, ["limits", 0], (document) => {
    const limit = new YAMLMap();
    limit.set("by", document.createNode(["user"], { flow: true }));
    limit.set("windows", document.createNode(["10/s"], { flow: true }));
    if (document.has("limits")) document.addIn(["limits"], limit);
    else document.set("limits", document.createNode([limit]));
  });
}

export function removeLimit(text: string, index: number): string {
  return edit(text, ["limits", index], (document) => document.deleteIn(["limits", index]));
}

function edit(text: string, path: FieldPath, change: (document: Document) => void): string {
  const document: Document = parseDocument(text, { logLevel: "error" });
  if (document.errors.length > 0 || !hasPlace(document, path)) return text;
  change(document);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** Whether everything on the way to a field is a map or a list, or absent. */
function hasPlace(document: Document, path: FieldPath): boolean {
  if (document.contents !== null && !isMap(document.contents)) return false;
  return path.slice(0, -1).every((_, at) => {
    const node = document.getIn(path.slice(0, at + 1), true);
    return node === undefined || (typeof path[at + 1] === "number" ? isSeq(node) : isMap(node));
  });
}

/** `GET, post` as a list; nothing for nothing. */
export function splitList(text: string): readonly string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

/** A stored policy as YAML as people write it: short lists in one line, no anchors and no folded lines. */
export function renderPolicyYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Seq(_, list) {
      const texts = list.items.map((item) => (isScalar(item) ? String(item.value) : undefined));
      if (texts.every((text) => text !== undefined) && texts.join(", ").length <= longestList) list.flow = true;
    },
  });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** Longer lists have a line for each item. */
const longestList = 90;

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function asText(value: unknown): string {
  return typeof value === "string"
    ? value
    : typeof value === "number" || typeof value === "boolean"
      ? String(value)
      : "";
}

function asList(value: unknown): readonly string[] {
  return value === undefined || value === null ? [] : (Array.isArray(value) ? value : [value]).map(asText);
}
