// What an OAuth client keeps, in memory, and a user who agrees to everything: the authorization page of the suite
// redirects at once.

const CALLBACK = 'http://127.0.0.1/callback';
/** The suite knows this name and does not read the document. */
const METADATA_URL = 'https://conformance-test.local/client-metadata.json';

/** An OAuth provider as both SDK lines want it. `answer()` gives what the user brought back from the last redirect. */
export class Login {
  #client;
  #tokens;
  #verifier;
  #page;
  redirectUrl = CALLBACK;
  clientMetadataUrl = METADATA_URL;
  clientMetadata = {
    client_name: 'conformance client',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  };

  /** @param registered client id and secret of a client that needs no registration */
  constructor({ client_id, client_secret, issuer } = {}) {
    if (client_id === undefined) return;
    this.#client = { client_id, client_secret, ...(issuer ? { issuer } : {}) };
  }

  clientInformation() {
    return this.#client;
  }

  saveClientInformation(client) {
    this.#client = client;
  }

  tokens() {
    return this.#tokens;
  }

  saveTokens(tokens) {
    this.#tokens = tokens;
  }

  codeVerifier() {
    return this.#verifier;
  }

  saveCodeVerifier(verifier) {
    this.#verifier = verifier;
  }

  redirectToAuthorization(page) {
    this.#page = page;
  }

  invalidateCredentials(scope) {
    if (scope === 'all' || scope === 'client') this.#client = undefined;
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined;
    if (scope === 'all' || scope === 'verifier') this.#verifier = undefined;
  }

  /** The parameters of the redirect back; undefined when nobody was sent anywhere since the last time. */
  async answer() {
    const page = this.#page;
    this.#page = undefined;
    if (page === undefined) return undefined;
    const response = await fetch(page, { redirect: 'manual' });
    return new URL(response.headers.get('location')).searchParams;
  }
}
