import { auditKinds, moment } from "@sluice/protocol/admin";
import { tokenName } from "@sluice/protocol/tokens";
import { choice, described, integer, objectOf, type Shape, text } from "sluice/shape";
import { type Role, roles } from "../../../data-plane/access/roles.ts";
import { hotKeysQuery } from "../../../data-plane/transports/http/hot-keys-query.ts";
import { wholeNumber } from "../../../data-plane/transports/http/read-query.ts";
import {
  createToken,
  deleteKillSwitch,
  deleteToken,
  exportAll,
  getKillSwitch,
  getStatus,
  importAll,
  listAudit,
  listHotKeys,
  listNodes,
  listTokens,
  planImport,
  putKillSwitch,
} from "../handlers/operations.ts";
import { changeFields } from "../policy-shapes.ts";
import { maxVersion, pageQuery } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const killSwitchShape: Shape<{ readonly mode: "open" | "closed"; readonly for_ms?: number; readonly why?: string }> =
  objectOf(
    { mode: described(choice(["open", "closed"]), "open: everything is allowed. closed: everything is denied.") },
    {
      for_ms: described(
        integer({ min: 1_000, max: 86_400_000 }),
        "How long. Afterwards, policies decide again automatically.",
        {
          default: 3_600_000,
        },
      ),
      why: described(changeFields.why, "The reason. Required, here or in the query."),
    },
  );

const tokenShape: Shape<{
  readonly name: string;
  readonly role: Role;
  readonly team?: string;
  readonly expires_ms?: number;
  readonly why?: string;
}> = objectOf(
  {
    name: described(
      text({ max: 64, pattern: tokenName, form: "letters, digits or . _ @ : / -" }),
      "The name of its holder, for the audit and the log.",
    ),
    role: choice(roles),
  },
  {
    team: described(text({ max: 256 }), "The team whose policies an editor may change."),
    expires_ms: described(moment, "When it stops being valid. Default: 90 days from now."),
    why: changeFields.why,
  },
);

const anything: Shape<unknown> = {
  name: "a policy file",
  schema: {
    type: "object",
    description:
      "A whole policy file; or several: `files`, each with its name (`file`), under which problems are reported, and its `text`.",
  },
  read: (value) => value,
};

/** The size of the largest policy file. */
const maxImportBytes = 4 * 1024 * 1024;

const word = text({ max: 256 });
const when = wholeNumber({ min: 0, max: maxVersion });

const importQuery = {
  mode: described(
    choice(["merge", "replace"]),
    "Policies and subjects that the file does not name: merge keeps them, replace deletes them",
    {
      default: "merge",
    },
  ),
};

export const operationRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/kill-switch",
    summary: "Show whether all checks are allowed or denied, and until when",
    action: "kill_switch.get",
    needs: "read",
    answers: { 200: { description: "The kill switch", content: ["KillSwitch"] } },
    handle: getKillSwitch,
  }),
  adminRoute({
    method: "PUT",
    path: "/api/v1/kill-switch",
    summary: "Allow or deny every check on all nodes, for a limited time",
    action: "kill_switch.on",
    needs: "operate",
    body: killSwitchShape,
    answers: { 200: { description: "The kill switch, on (unchanged in a dry run)", content: ["KillSwitchChange"] } },
    handle: putKillSwitch,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/kill-switch",
    summary: "Let policies decide again",
    action: "kill_switch.off",
    needs: "operate",
    answers: { 200: { description: "The kill switch, off (unchanged in a dry run)", content: ["KillSwitchChange"] } },
    handle: deleteKillSwitch,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/audit",
    summary: "List changes and refused attempts, newest first",
    action: "audit.list",
    needs: "read",
    query: {
      kind: described(choice(auditKinds), "Only actions on targets of this kind"),
      target: described(text({ max: 4_096 }), "Only actions on this target: a policy's id, user:u1, …"),
      actor: described(word, "Only actions by the token of this name"),
      action: described(word, "Only this action: policy.put, kill_switch.on, …"),
      outcome: described(choice(["done", "refused"]), "Only completed actions, or only refused ones"),
      since_ms: described(when, "At this time or later"),
      until_ms: described(when, "Before this time"),
      ...pageQuery,
    },
    answers: {
      200: {
        description: "One page",
        content: ["AuditPage"],
        headers: { Link: "The next page, if there is one" },
      },
    },
    handle: listAudit,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/tokens",
    summary: "List tokens; the tokens themselves are not stored",
    action: "token.list",
    needs: "administer",
    answers: { 200: { description: "All tokens", content: ["Tokens"] } },
    handle: listTokens,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/tokens",
    summary: "Create a token; only this answer shows it",
    action: "token.make",
    needs: "administer",
    body: tokenShape,
    answers: {
      201: {
        description: "The new token (none in a dry run)",
        content: ["NewToken"],
        headers: { Location: "The path of the token" },
      },
    },
    handle: createToken,
  }),
  adminRoute({
    method: "DELETE",
    path: "/api/v1/tokens/{id}",
    summary: "Revoke a token",
    action: "token.revoke",
    needs: "administer",
    answers: { 200: { description: "The revoked token (unchanged in a dry run)", content: ["TokenChange"] } },
    handle: deleteToken,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/nodes",
    summary: "List the nodes, with the generation by which each decides",
    action: "node.list",
    needs: "read",
    answers: { 200: { description: "All nodes", content: ["Nodes"] } },
    handle: listNodes,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/status",
    summary: "Show the state of the node that answers: policy store, counters, queue, sinks, connections",
    action: "node.status",
    needs: "read",
    answers: { 200: { description: "The state of the node", content: ["Status"] } },
    handle: getStatus,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/hot-keys",
    summary: "List the counters that are checked or denied most, across all nodes",
    action: "hot_key.list",
    needs: "read",
    query: { ...hotKeysQuery, node: described(word, "Only the report of this node, by its id or its name") },
    answers: { 200: { description: "The order, hottest first", content: ["HotKeys"] } },
    handle: listHotKeys,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/export",
    summary: "Export the whole configuration as a policy file, for Git",
    action: "configuration.export",
    needs: "read",
    answers: { 200: { description: "A policy file", content: "application/yaml" } },
    handle: exportAll,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/import",
    summary: "Import a policy file, whole or not at all",
    action: "configuration.import",
    needs: "administer",
    expects: "or_any",
    body: anything,
    bodyUnread: true,
    bodyTypes: ["yaml", "json"],
    maxBodyBytes: maxImportBytes,
    query: importQuery,
    answers: { 200: { description: "What was imported (nothing in a dry run)", content: ["ImportDone"] } },
    handle: importAll,
  }),
  adminRoute({
    method: "POST",
    path: "/api/v1/import/plan",
    summary: "What an import would create, change and delete, with the difference; nothing is saved",
    action: "configuration.plan.get",
    needs: "read",
    access: "read",
    body: anything,
    bodyUnread: true,
    bodyTypes: ["yaml", "json"],
    maxBodyBytes: maxImportBytes,
    query: importQuery,
    answers: { 200: { description: "The plan", content: ["ImportPlan"] } },
    handle: planImport,
  }),
];
