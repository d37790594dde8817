/** Headers of a response, by lower-cased name; several values of one name are a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;
