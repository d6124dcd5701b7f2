import { createElement, type ReactNode } from "react";

export default function Layout({ children }: { readonly children: ReactNode }): ReactNode {
  return createElement("html", null, createElement("body", null, children));
}
