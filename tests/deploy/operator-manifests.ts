import { boolean, choice, listOf, mapOf, objectOf, parseShape, refine, type Shape, text } from "sluice/shape";

/*
 * What the chart uses of the Prometheus operator's resources, and nothing else of them: a key that is misspelt or in the
 * wrong place is an unknown one. `npm run chart` decodes the same manifests into the operator's own types.
 */
const key = text({ max: 256 });
const anything = text({ max: 4096 });
const duration = text({ max: 16, pattern: /^(\d+(ms|[smhdwy]))+$/, form: "a duration such as 15s" });
const labels = mapOf(key, anything);
const metadata = objectOf({ name: anything, labels });

const secretKey = objectOf({ name: anything, key: anything });
const endpoint = objectOf(
  { port: anything, path: anything, interval: duration },
  {
    scheme: choice(["http", "https"]),
    tlsConfig: objectOf({ insecureSkipVerify: boolean }),
    authorization: objectOf({ credentials: secretKey }),
  },
);
const rule = refine(
  objectOf({ expr: anything }, { alert: anything, record: anything, for: duration, labels, annotations: labels }),
  (given, reading) =>
    (given.alert === undefined) === (given.record === undefined)
      ? reading.problem("is either an alert or a record")
      : given,
);

const shapes: Readonly<Record<string, Shape<unknown>>> = {
  ServiceMonitor: objectOf({
    apiVersion: choice(["monitoring.coreos.com/v1"]),
    kind: choice(["ServiceMonitor"]),
    metadata,
    spec: objectOf({ jobLabel: anything, selector: objectOf({ matchLabels: labels }), endpoints: listOf(endpoint) }),
  }),
  PrometheusRule: objectOf({
    apiVersion: choice(["monitoring.coreos.com/v1"]),
    kind: choice(["PrometheusRule"]),
    metadata,
    spec: objectOf({ groups: listOf(objectOf({ name: anything, rules: listOf(rule) })) }),
  }),
};

/** Throws with every problem if it is a resource of the operator and not as the operator wants it. */
export function checkOperatorManifest(manifest: { readonly kind: string }): void {
  const shape = shapes[manifest.kind];
  if (shape !== undefined) parseShape(shape, manifest, "invalid_request", manifest.kind);
}
