/** The same on every version of PostgreSQL. */
import './plain-sql.test.js';
