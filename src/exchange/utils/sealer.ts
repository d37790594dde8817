import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_BYTES = 2;
/** Longer tokens are rejected before decryption. */
export const MAX_TOKEN_CHARS = 8 * 1024;

interface Key {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/**
 * Encrypts and authenticates (AES-256-GCM) what clients hold for the gateway: session ids, request states. The first key
 * seals and all keys open, so that keys can be rotated, and replicas with the same keys open each other's tokens.
 */
export class Sealer {
  readonly #keys: readonly Key[];

  /** @param secrets any texts; without one, the key is random, and its tokens are invalid in other processes */
  constructor(secrets: readonly string[]) {
    const sources = secrets.length > 0 ? secrets : [randomBytes(32).toString('base64')];
    this.#keys = sources.map((source) => {
      const secret = createHash('sha256').update('eragate seal\0').update(source).digest();
      const id = createHash('sha256').update('eragate key id\0').update(secret).digest();
      return { id: id.subarray(0, KEY_ID_BYTES), secret };
    });
  }

  /** @param purpose of the token, which opens for the same purpose only */
  seal(purpose: string, content: string): string {
    const key = this.#keys[0] as Key;
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv('aes-256-gcm', key.secret, iv);
    cipher.setAAD(Buffer.from(purpose));
    const body = Buffer.concat([cipher.update(content, 'utf8'), cipher.final()]);
    return Buffer.concat([key.id, iv, body, cipher.getAuthTag()]).toString('base64url');
  }

  /** @returns undefined for text that none of the keys sealed for this purpose */
  open(purpose: string, token: string): string | undefined {
    if (token.length > MAX_TOKEN_CHARS) return undefined;
    const bytes = Buffer.from(token, 'base64url');
    // Another spelling of the same bytes would be another id of the same session.
    if (bytes.length < KEY_ID_BYTES + IV_BYTES + TAG_BYTES || bytes.toString('base64url') !== token)
      return undefined;
    const keyId = bytes.subarray(0, KEY_ID_BYTES);
    for (const { id, secret } of this.#keys) {
      // Ids are short: two keys may have the same.
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
