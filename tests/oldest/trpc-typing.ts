// Types alone: what tRPC 10 infers around our middleware. What tRPC 11 infers, tests/frameworks/trpc.test.ts relies on.
import { findTicket, rateLimit, type Ticket } from "@sluice/middleware/trpc";
import { initTRPC } from "@trpc/server";

interface Context {
  readonly user: string | undefined;
  readonly rateLimit?: Ticket | undefined;
}

const t = initTRPC.context<Context>().create();
const text = (value: unknown): string => String(value);

/** The context is known to options, and what middleware before it added to it. */
const limited = t.procedure
  .use(({ ctx, next }) => next({ ctx: { user: ctx.user ?? "nobody", team: 7 } }))
  .use(rateLimit("1/s", { dimensions: { user: ({ ctx }) => ctx.user.padEnd(ctx.team) } }));

t.procedure.use(
  rateLimit("1/s", {
    // @ts-expect-error: a context without such a field
    dimensions: { user: ({ ctx }) => ctx.usr },
  }),
);

/** Input, output and context are what they are without it. */
export const router = t.router({
  length: limited.input(text).query(({ ctx, input }): number => ctx.user.length + ctx.team + input.length),
  left: limited.mutation(({ ctx }) => ctx.rateLimit?.decision.remaining ?? findTicket(ctx)?.decision.remaining),
  late: t.procedure
    .input(text)
    .use(t.middleware(rateLimit("1/s", { charge: (_call, { status }) => status })))
    .query(({ input }) => input.toUpperCase()),
});

type Caller = ReturnType<typeof router.createCaller>;
export const answers = async (caller: Caller): Promise<[number, number | undefined, string]> => [
  await caller.length("a"),
  await caller.left(),
  // @ts-expect-error: the input is a text
  await caller.late(1),
];
