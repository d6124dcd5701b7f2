import { policies } from "./0001-policies.ts";
import { rollouts } from "./0002-rollouts.ts";
import { nodes } from "./0003-nodes.ts";
import { usage } from "./0004-usage.ts";
import { denials } from "./0005-denials.ts";
import { exceptions } from "./0006-exceptions.ts";
import { counters } from "./0007-counters.ts";
import type { Migration } from "./migration.ts";

/**
 * In order. A released migration never changes, and none goes back. A node upgrades the schema while nodes of the
 * previous version read and write, so a migration only adds: tables, indexes, and columns that are nullable or have a
 * default. Programs name every column that they read and write; they do not see new ones, and leave them as they are in
 * rows that they replace. To remove a column or change its meaning, one release stops using it, and a later one removes
 * it.
 */
export const migrations: readonly Migration[] = [policies, rollouts, nodes, usage, denials, exceptions, counters];
