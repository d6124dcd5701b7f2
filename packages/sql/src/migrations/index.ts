import { policies } from "./0001-policies.ts";
import { rollouts } from "./0002-rollouts.ts";
import { nodes } from "./0003-nodes.ts";
import type { Migration } from "./migration.ts";

/**
 * In order. One that was released stays as it is, and none goes back. A node upgrades the schema while others of the version
 * before read and write, so a migration only adds: tables, indexes, and columns that are nullable or have a default. Programs
 * name every column that they read and write; they do not see new ones, and leave them as they are in rows that they replace. What
 * is to be removed or to mean something else is first no longer used by one release, and then removed by a later one.
 */
export const migrations: readonly Migration[] = [policies, rollouts, nodes];
