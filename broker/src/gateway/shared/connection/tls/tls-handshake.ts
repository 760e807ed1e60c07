/** First byte of a TLS client (RFC 8446, section 5.1). On a port without TLS, the log says so. */
export const tlsHandshake = 0x16;
