export { hasPostgres, type PostgresServer, startPostgres, titleOf } from "../../../../../../tools/postgres-server.mjs";
