/** The path settings of Envoy's connection manager. */
export interface EnvoyPaths {
  readonly normalizePath: boolean;
  readonly mergeSlashes: boolean;
  readonly unescapesSlashes: boolean;
}

/** Every combination of settings, except those with which Envoy refuses or redirects instead of rewriting. */
export const everyEnvoy: readonly EnvoyPaths[] = [true, false].flatMap((normalizePath) =>
  [true, false].flatMap((mergeSlashes) =>
    [true, false].map((unescapesSlashes) => ({ normalizePath, mergeSlashes, unescapesSlashes })),
  ),
);

/**
 * The `:path` that Envoy routes by, sends in descriptors and passes on. This is a model, because Envoy cannot be installed
 * for tests. It follows the documentation of `path_with_escaped_slashes_action` (UNESCAPE_AND_FORWARD decodes %2F and %5C),
 * `normalize_path` (RFC 3986, by the URL library of Chromium, as `new URL` does) and `merge_slashes`, in that order:
 * https://www.envoyproxy.io/docs/envoy/latest/api-v3/extensions/filters/network/http_connection_manager/v3/http_connection_manager.proto
 * Undefined for what Envoy refuses: paths with a fragment, and those that do not begin with a slash.
 */
export function forwardByEnvoy(target: string, settings: EnvoyPaths): string | undefined {
  const [, path = "", query = ""] = /^([^?]*)(.*)$/s.exec(target)!;
  if (!path.startsWith("/") || path.includes("#")) return undefined;
  let forwarded = path;
  if (settings.unescapesSlashes) forwarded = forwarded.replace(/%2f/gi, "/").replace(/%5c/gi, "\\");
  if (settings.normalizePath) forwarded = new URL(`http://envoy${forwarded}`).pathname;
  if (settings.mergeSlashes) forwarded = forwarded.replace(/\/{2,}/g, "/");
  return forwarded + query;
}
