import { anyOf, type BodyOf, integer, listOf } from "../shapes/body-shape.ts";
import { objectOf } from "../shapes/object-body.ts";
import { decision } from "./decision.ts";
import { error } from "./error.ts";

const decided = objectOf({ status: integer, decision });
const refused = objectOf({ status: integer, error });

/** The answers to the checks of a batch, in order: each has the status that it would have alone. */
export const batch = objectOf({ answers: listOf(anyOf(decided, refused)) });
export type BatchBody = BodyOf<typeof batch>;
