/** The same, and the types. */
import './pack.test.js';
