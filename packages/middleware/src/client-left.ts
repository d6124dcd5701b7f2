/** The status of a request whose client left before there was an answer. */
export const clientLeft = 499;
