import { startCaddy } from "@sluice/test-servers";
import { describeGateway } from "./gateway-contract.ts";
import { readExample } from "./gateway-under-test.ts";

const example = await readExample("Caddyfile");

describeGateway({
  name: "Caddy",
  start: (addressesFor) => startCaddy({ sitesFor: (port) => example(addressesFor(port)) }),
  statusesWhileAway: [502, 504],
  headersTo: "app",
});
