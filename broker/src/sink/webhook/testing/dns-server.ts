export { startDnsServer } from "../../../../../tools/dns-server.mjs";
