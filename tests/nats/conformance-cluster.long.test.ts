/** The model of the suite, with all its sequences, and what only a cluster can show. */
import './conformance-cluster.test.js';
