import { anything, type BodyOf, integer, jsonObject, listOf } from "../shapes/body-shape.ts";
import { objectOf, optional } from "../shapes/object-body.ts";

/** Every policy in force, as a policy file has it, with every default written out. */
export const policySet = objectOf({
  generation: integer,
  policies: listOf(jsonObject),
  default: anything,
  subjects: listOf(anything),
  descriptors: optional(listOf(anything)),
});
export type PolicySetBody = BodyOf<typeof policySet>;
