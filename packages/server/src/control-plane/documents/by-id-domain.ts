/** The domain of policies that apply only to requests that name them by id. */
export const byIdDomain = "by-id";
