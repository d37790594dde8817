import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_BYTES = 2;
/** Longer tokens are refused before any of their bytes are decrypted. */
export const MAX_TOKEN_CHARS = 8 * 1024;

interface Key {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/**
 * Seals what the gateway hands to clients to keep for it (session ids, request states) with AES-256-GCM, so that it
 * comes back unread and unchanged or not at all. The first key seals; all of them open, which is how keys are
 * rotated and how replicas share sessions.
 */
export class Sealer {
  readonly #keys: readonly Key[];

  /** @param secrets any texts; without one, a random key is made, and what it sealed dies with the process */
  constructor(secrets: readonly string[]) {
    const sources = secrets.length > 0 ? secrets : [randomBytes(32).toString('base64')];
    this.#keys = sources.map((source) => {
      const secret = createHash('sha256').update('eragate seal\0').update(source).digest();
      const id = createHash('sha256').update('eragate key id\0').update(secret).digest();
      return { id: id.subarray(0, KEY_ID_BYTES), secret };
    });
  }

  /** @param purpose what the token is for; it opens for the same purpose only */
  seal(purpose: string, content: string): string {
    const key = this.#keys[0] as Key;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key.secret, iv);
    cipher.setAAD(Buffer.from(purpose));
    const body = Buffer.concat([cipher.update(content, 'utf8'), cipher.final()]);
    return Buffer.concat([key.id, iv, body, cipher.getAuthTag()]).toString('base64url');
  }

  /** @returns undefined for what was not sealed by one of the keys, for this purpose, exactly so */
  open(purpose: string, token: string): string | undefined {
    if (token.length > MAX_TOKEN_CHARS) return undefined;
    const bytes = Buffer.from(token, 'base64url');
    // A second spelling of the same bytes would be a second name of the same session.
    if (bytes.length < KEY_ID_BYTES + IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== token)
      return undefined;
    const keyId = bytes.subarray(0, KEY_ID_BYTES);
    for (const { id, secret } of this.#keys) {
      // Ids are short, so that two keys may share one.
      const content = id.equals(keyId) ? unseal(secret, purpose, bytes) : undefined;
      if (content !== undefined) return content;
    }
    return undefined;
  }
}

function unseal(secret: Buffer, purpose: string, bytes: Buffer): string | undefined {
  const iv = bytes.subarray(KEY_ID_BYTES, KEY_ID_BYTES + IV_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', secret, iv, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(purpose));
  decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
  try {
    const body = bytes.subarray(KEY_ID_BYTES + IV_BYTES, bytes.length - TAG_BYTES);
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
