import "./styles.css";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { isTemporary } from "./api/advise.ts";
import { ApiError } from "./api/api-error.ts";
import { createConsoleRouter } from "./app/routes.tsx";
import { followTabs, forgetSession } from "./session/session.ts";
import { ErrorBoundary } from "./ui/error-boundary.tsx";
import { ToastRegion } from "./ui/toast.tsx";
import { removeCode } from "./url/one-time-code.ts";

removeCode();

/** A token may expire or be revoked at any moment: then the sign-in view comes, and leads back here. */
const onError = (error: unknown): void => {
  if (error instanceof ApiError && error.status === 401) forgetSession(queries);
};

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      retry: (failures, error) => failures < 2 && isTemporary(error),
      staleTime: 5_000,
    },
  },
});

followTabs(queries);

const router = createConsoleRouter(queries);

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    {/* The content security policy allows no style elements. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queries}>
        <ErrorBoundary>
          <RouterProvider router={router} />
        </ErrorBoundary>
        <ToastRegion />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
