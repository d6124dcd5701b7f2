import type { ErrorBody } from "../http/error.ts";
import type { KeptSubjectBody } from "./subject.ts";

/** An error of the admin API. In a version conflict of a subject, `current` is the stored subject. */
export type AdminErrorBody = Omit<ErrorBody, "current"> & { readonly current?: KeptSubjectBody | undefined };
