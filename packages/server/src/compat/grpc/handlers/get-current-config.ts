import type { ConfigRequest, ConfigResponse, DomainConfig, RatePolicy } from "@sluice/protocol/ratelimiter";
import type { Policy, Window } from "sluice";
import type { GrpcContext } from "../../../data-plane/transports/grpc/method.ts";
import { flowPerSecond } from "../bucket-levels.ts";
import { findPrefix } from "../limit-key.ts";

export function getCurrentConfig(_request: ConfigRequest, { limiter }: GrpcContext): ConfigResponse {
  const { policies, fallback } = limiter.snapshot.policySet;
  const all = fallback === undefined ? policies : [...policies, fallback];
  return { configs: all.map(renderConfig) };
}

function renderConfig(policy: Policy): DomainConfig {
  return {
    domain: policy.match.domain,
    prefixKey: findPrefix(policy) ?? "",
    policies: policy.limits.flatMap(({ windows }) => windows.map(renderRate)),
  };
}

function renderRate(window: Window): RatePolicy {
  return {
    flowRatePerSecond: flowPerSecond(window),
    burstCapacity: Math.floor(window.burst),
    name: window.name ?? "",
  };
}
