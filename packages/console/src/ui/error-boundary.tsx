import { Component, type ReactNode } from "react";
import { Button } from "./button.tsx";
import { ErrorNotice } from "./error-notice.tsx";

/** Keeps a mistake in one view from taking the whole console with it. */
export class ErrorBoundary extends Component<{ readonly children: ReactNode }, { readonly error: unknown }> {
  override readonly state: { readonly error: unknown } = { error: undefined };

  static getDerivedStateFromError(error: unknown): { readonly error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div className="flex flex-col items-start gap-3 p-6">
        <ErrorNotice error={error} what="This view stopped working" />
        <Button icon="refresh" onClick={() => location.reload()}>
          Reload the page
        </Button>
      </div>
    );
  }
}
