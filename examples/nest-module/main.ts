// A Nest app: one limit for all handlers from the module, others from decorators, and none for health checks.
import "reflect-metadata";
import { Controller, Get, Module, Param, Post } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type NestRequest, RateLimit, RateLimitModule, SkipRateLimit } from "@sluice/middleware/nest";
import { limit } from "sluice";

// In production: the tenant of the signed-in user.
function findTenant({ headers }: NestRequest): string | undefined {
  return headers["x-tenant"]?.toString();
}

@Controller("orders")
class OrdersController {
  @Get(":id")
  find(@Param("id") id: string): object {
    return { order: id };
  }

  // Expensive: two a minute for each tenant, instead of the module's limit. Requests without a tenant count by address.
  @RateLimit(limit("2/m").by("subject"), { dimensions: { tenant: findTenant } })
  @Post("export")
  export(): object {
    return { rows: 100_000 };
  }
}

@SkipRateLimit()
@Controller("health")
class HealthController {
  @Get()
  look(): object {
    return { status: "ok" };
  }
}

@Module({
  imports: [RateLimitModule.forRoot("100/m")],
  controllers: [OrdersController, HealthController],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
await app.listen(Number(process.env.PORT ?? "3000"), "127.0.0.1");
console.log(`listening on ${await app.getUrl()}`);
