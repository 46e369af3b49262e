// The gradient at a sample from what it gathers; x and y less the pivots of the window.
float loss_gradient(vec3 gathered, float x, float y) {
    return gathered.x + (x + y) * gathered.y + (x - y) * gathered.z;
}
