// @ts-expect-error: types of React are not installed, and nothing else needs them.
import { createElement } from "react";

export default function Layout({ children }: { readonly children: unknown }): unknown {
  return createElement("html", null, createElement("body", null, children));
}
