import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useRouter, useSearch } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { type Credentials, sessionQuery, signIn } from "../../session/session.ts";
import { Button } from "../../ui/button.tsx";
import { ErrorNotice } from "../../ui/error-notice.tsx";
import { TextField } from "../../ui/field.tsx";
import { takeCode } from "../../url/one-time-code.ts";
import { safeReturnPath } from "../../url/search-params.ts";

export default function SignInView(): ReactNode {
  const { to } = useSearch({ from: "/sign-in" });
  const { busy, error, exchange } = useSignIn(to);
  const field = useRef<HTMLInputElement>(null);
  const exchanged = useRef(false);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a code is exchanged once.
  useEffect(() => {
    document.title = "Sign in · Sluice";
    const code = takeCode();
    if (code === undefined || exchanged.current) return;
    exchanged.current = true;
    void exchange({ code });
  }, []);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const token = field.current?.value.trim() ?? "";
    // Before the answer: no copy of the token stays in the page.
    if (field.current !== null) field.current.value = "";
    if (token !== "") void exchange({ token });
  };

  return (
    <main className="flex min-h-screen items-center justify-center px-4 py-10">
      <div className="flex w-full max-w-sm flex-col gap-5">
        <div className="flex items-center gap-2.5">
          <img alt="" height={30} src="/favicon.svg" width={30} />
          <h1 className="text-2xl font-semibold tracking-tight">Sign in to Sluice</h1>
        </div>
        <form className="flex flex-col gap-4 rounded-lg border border-line bg-surface p-5" onSubmit={submit}>
          <TextField
            // A password manager may keep it; the console does not.
            autoComplete="current-password"
            autoFocus
            hint="It is exchanged for a cookie that scripts cannot read, and is not stored in this page."
            inputRef={field}
            label="Token"
            name="token"
            required
            type="password"
          />
          {error !== undefined && <ErrorNotice error={error} what="You are not signed in" />}
          <Button busy={busy} kind="primary" type="submit">
            {busy ? "Signing in…" : "Sign in"}
          </Button>
        </form>
        <div className="text-sm text-ink-faint">
          <p>No token at hand?</p>
          <ul className="mt-1 list-disc space-y-1 pl-5">
            <li>
              The server prints a link when it starts, and <code className="font-mono text-xs">sluice console</code>{" "}
              makes another. It signs you in once, within five minutes.
            </li>
            <li>
              The first start writes an admin token to a file next to the store, such as{" "}
              <code className="font-mono text-xs">sluice.db-admin-token</code>.
            </li>
            <li>An admin can make you a token under Access.</li>
          </ul>
        </div>
      </div>
    </main>
  );
}

function useSignIn(to: string | undefined) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const router = useRouter();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const exchange = async (credentials: Credentials) => {
    setBusy(true);
    setError(undefined);
    try {
      const session = await signIn(credentials);
      queries.clear();
      queries.setQueryData(sessionQuery.queryKey, session);
      await router.invalidate();
      await navigate({ href: safeReturnPath(to), replace: true });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return { busy, error, exchange };
}
