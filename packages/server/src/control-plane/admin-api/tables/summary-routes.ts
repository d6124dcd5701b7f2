import { subjectOrders } from "@sluice/protocol/admin";
import { choice, described, text } from "sluice/shape";
import { wholeNumber } from "../../../data-plane/transports/http/read-query.ts";
import { findSubjects, listPolicySummaries, listTopSubjects } from "../handlers/summaries.ts";
import { maxVersion, pageQuery } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const word = text({ max: 256 });
const when = wholeNumber({ min: 0, max: maxVersion });
const onePage = { description: "One page, of at most 100 items", headers: { Link: "The next page, if there is one" } };

export const summaryRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/policy-summaries",
    summary: "List policies with what they do, their last 24 hours, and how close they came to their limits",
    action: "policy.summary.list",
    needs: "read",
    query: {
      owner: described(word, "Only those of this team"),
      search: described(word, "Only those with this in their id or owner, in any case"),
      id: described(word, "Only this policy"),
      ...pageQuery,
    },
    answers: { 200: { ...onePage, content: ["PolicySummaryPage"] } },
    handle: listPolicySummaries,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/usage/top",
    summary: "List the subjects that used most in a period",
    action: "usage.top.list",
    needs: "read",
    query: {
      dimension: described(word, "Subjects of this dimension, which is one of --usage-by", { default: "tenant" }),
      policy: described(word, "Only their usage of this policy"),
      from_ms: described(when, "Periods that begin at this time or later. Default: a day ago"),
      to_ms: described(when, "Periods that begin before this time. Default: now"),
      by: described(choice(subjectOrders), "What to order them by", { default: "decided" }),
      count: described(wholeNumber({ min: 1, max: 100 }), "How many", { default: 10 }),
    },
    answers: { 200: { description: "The subjects, the first used most", content: ["TopSubjects"] } },
    handle: listTopSubjects,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/subjects",
    summary: "Find subjects by the beginning of their value",
    action: "subject.find.list",
    needs: "read",
    query: {
      prefix: described(text({ min: 0, max: 256 }), "What the value begins with. Default: any"),
      dimension: described(word, "Only subjects of this dimension"),
      ...pageQuery,
    },
    answers: { 200: { ...onePage, content: ["KnownSubjectPage"] } },
    handle: findSubjects,
  }),
];
