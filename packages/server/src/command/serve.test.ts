import { resolve } from "node:path";
import { parsePolicies } from "sluice";
import { expect, it } from "vitest";
import { renderGreeting } from "./serve.ts";

it("greets with paths as they are from here, and with the first token in a terminal alone", () => {
  const addresses = { http: ["http://127.0.0.1:8080"], grpc: [], resp: [], admin: ["http://127.0.0.1:8090"] };
  const policySet = parsePolicies({ policies: [] });
  const store = `sqlite:${resolve(".sluice", "policies.db")}`;
  const firstToken = { token: "sluice_x", file: resolve(".sluice", "policies.db-admin-token") };
  const greeting = renderGreeting(addresses, undefined, policySet, "memory", { store, firstToken, isTerminal: true });
  expect(greeting).toContain("0 policies from the policy store sqlite:.sluice/policies.db\n");
  expect(greeting).toContain("is kept in .sluice/policies.db-admin-token:\n\n  sluice_x\n");
  const toFile = renderGreeting(addresses, undefined, policySet, "memory", { store, firstToken });
  expect(toFile).toContain("export SLUICE_TOKEN=$(cat .sluice/policies.db-admin-token)\n");
  expect(toFile).not.toContain("sluice_x");
  const elsewhere = { store: "postgres://db:5432/sluice" };
  const later = renderGreeting(addresses, undefined, policySet, "memory", elsewhere);
  expect(later).toContain("from the policy store postgres://db:5432/sluice\n");
  expect(later).not.toContain("token");
});

it("shows where the console is, and the link that it is given", () => {
  const addresses = { http: [], grpc: [], resp: [], admin: ["http://127.0.0.1:8090"] };
  const consoleAt = "http://127.0.0.1:8090/";
  const consoleLink = `${consoleAt}#code=x`;
  const given = { consoleAt, consoleLink };
  const greeting = renderGreeting(addresses, undefined, parsePolicies({ policies: [] }), "memory", given);
  expect(greeting).toContain(`sluice console prints another:\n\n  ${consoleLink}\n`);
  expect(greeting).toContain(`  console    ${consoleAt}\n`);
});
