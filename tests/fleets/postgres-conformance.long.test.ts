/** The model of the suite, with all its sequences, and the layout that the everyday run leaves out. */
import './postgres-conformance.test.js';
