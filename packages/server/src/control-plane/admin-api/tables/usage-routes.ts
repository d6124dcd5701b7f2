import { choice, described, type Shape, text } from "sluice/shape";
import { wholeNumber } from "../../../data-plane/transports/http/read-query.ts";
import { listDenials, listUsage } from "../handlers/usage.ts";
import { maxVersion, pageQuery } from "../query-parameters.ts";
import { type AdminRoute, adminRoute } from "../route.ts";

const groups = ["policy", "limit", "subject"] as const;

/** Some of the words, separated by commas. */
const groupBy: Shape<readonly (typeof groups)[number][]> = {
  name: "words separated by commas",
  schema: { type: "string", pattern: "^(policy|limit|subject)(,(policy|limit|subject))*$" },
  read: (value, reading) => {
    const words = String(value).split(",");
    const wrong = words.find((one) => !(groups as readonly string[]).includes(one));
    return wrong === undefined
      ? [...new Set(words as (typeof groups)[number][])]
      : reading.problem(`must be some of policy, limit and subject, but has ${JSON.stringify(wrong)}`);
  },
};

const word = text({ max: 256 });
const when = wholeNumber({ min: 0, max: maxVersion });
const subject = text({ max: 4_096 });
const format = described(choice(["json", "csv"]), "The form of the answer. Default: as `Accept` says, else json");

const page = {
  description: "One page",
  headers: { Link: "The next page, if there is one" },
  alsoCsv: true,
};

export const usageRoutes: readonly AdminRoute[] = [
  adminRoute({
    method: "GET",
    path: "/api/v1/usage",
    summary: "Show how much policies and subjects were used over time",
    action: "usage.list",
    needs: "read",
    query: {
      step: described(choice(["minute", "hour", "day"]), "The length of a period", { default: "hour" }),
      from_ms: described(when, "Periods that begin at this time or later. Default: a day ago"),
      to_ms: described(when, "Periods that begin before this time. Default: now"),
      policy: described(word, "Only this policy"),
      limit_name: described(word, "Only the limit of this name, or that counts by these dimensions"),
      dimension: described(
        word,
        "Usage of subjects of this dimension, which is one of --usage-by. Default: the totals",
      ),
      subject: described(subject, "Usage of this subject of the dimension"),
      group_by: described(groupBy, "What to list separately, with commas: policy, limit, subject"),
      format,
      ...pageQuery,
    },
    answers: { 200: { ...page, content: ["UsagePage"] } },
    handle: listUsage,
  }),
  adminRoute({
    method: "GET",
    path: "/api/v1/denials",
    summary: "List recent denials, newest first, with the reason for each",
    action: "denial.list",
    needs: "read",
    query: {
      dimension: described(word, "Only requests with a value of this dimension, such as tenant"),
      subject: described(subject, "That value"),
      policy: described(word, "Only denials by this policy"),
      limit_name: described(word, "Only by the limit of this name, or that counts by these dimensions"),
      from_ms: described(when, "At this time or later. Default: a day ago"),
      to_ms: described(when, "Before this time. Default: now"),
      format,
      ...pageQuery,
    },
    answers: { 200: { ...page, content: ["DenialPage"] } },
    handle: listDenials,
  }),
];
