const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Whether a text is Base64 with the standard alphabet and padding (RFC 4648, section 4). Unused bits need not be zero. */
export function isBase64(text: string): boolean {
  return base64.test(text);
}
