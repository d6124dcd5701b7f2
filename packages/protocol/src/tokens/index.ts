/** `@sluice/protocol/tokens`: tokens, and the file in which a server finds them. */
export { type FirstTokenSettings, firstTokenPath } from "./first-token-path.ts";
export { makeToken, tokenDigest } from "./make-token.ts";
export { parseTokens, type TokenEntry, tokenName } from "./parse-tokens.ts";
