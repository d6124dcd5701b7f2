/** The domain of policies that apply to no request but those that name them by id. */
export const byIdDomain = "by-id";
